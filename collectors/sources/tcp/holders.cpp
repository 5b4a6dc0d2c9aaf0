#include "collectors/sources/tcp/holders.hpp"

#include <dirent.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>

#include "base/proc.hpp"
#include "base/text.hpp"

namespace gpumeter::tcp {
namespace {

constexpr std::size_t kMostDescriptors = 1U << 20U;  // the kernel's default limit of a process (nr_open)

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

/// The inode of "socket:[123]".
std::optional<std::uint64_t> socket_of(std::string_view target) noexcept {
  constexpr std::string_view kStart = "socket:[";
  if (!target.starts_with(kStart) || !target.ends_with(']')) return std::nullopt;
  return parse_number<std::uint64_t>(target.substr(kStart.size(), target.size() - kStart.size() - 1));
}

}  // namespace

Held sockets_of(const std::string& procfs, int pid, const std::set<std::uint64_t>& wanted) {
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(proc::path(procfs, pid, "fd").c_str()));
  if (!folder) return {{}, errno};
  Held held;
  std::size_t seen = 0;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (++seen > kMostDescriptors || held.sockets.size() == wanted.size()) break;
    std::array<char, 64> target{};
    const ssize_t length = ::readlinkat(::dirfd(folder.get()), entry->d_name, target.data(), target.size());
    if (length <= 0) continue;
    const auto inode = socket_of({target.data(), static_cast<std::size_t>(length)});
    if (inode && wanted.contains(*inode)) held.sockets.insert(*inode);
  }
  return held;
}

}  // namespace gpumeter::tcp
