#include "collectors/amd/users.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/descriptor.hpp"

namespace gpumeter::amd {
namespace {

/// True if the file holds a number other than 0.
bool is_positive(int folder, const char* name) noexcept {
  const Descriptor file(::openat(folder, name, O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  std::array<char, 32> buffer{};
  const ssize_t size = ::read(file.number(), buffer.data(), buffer.size());
  const auto value =
      sysfs::parse_integer({buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))});
  return value && *value > 0;
}

}  // namespace

AmdUsers::AmdUsers(const std::string& card_folder, const std::string& sysfs_root,
                   std::vector<std::uint32_t> gpu_ids)
    : screens_(card_folder), gpu_ids_(std::move(gpu_ids)) {
  if (!gpu_ids_.empty()) processes_.reset(::opendir((sysfs_root + "/class/kfd/kfd/proc").c_str()));
}

bool AmdUsers::process_computes() const noexcept {
  if (!processes_) return false;
  ::rewinddir(processes_.get());
  while (const dirent* const entry =
             ::readdir(processes_.get())) {  // NOLINT(concurrency-mt-unsafe): ours alone
    if (entry->d_name[0] != '.' && holds_memory(entry->d_name)) return true;
  }
  return false;
}

bool AmdUsers::holds_memory(const char* pid) const noexcept {
  const auto holds = [&](std::uint32_t gpu) {
    std::array<char, 64> name{};
    const int length = std::snprintf(name.data(), name.size(), "%.40s/vram_%u", pid, gpu);
    return length > 0 && is_positive(::dirfd(processes_.get()), name.data());
  };
  return std::any_of(gpu_ids_.begin(), gpu_ids_.end(), holds);
}

}  // namespace gpumeter::amd
