#include "collectors/amd/amd_context.hpp"

#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "collectors/support/drm.hpp"
#include "collectors/support/pci.hpp"

namespace gpumeter::amd {
namespace {

std::optional<KfdNode> kfd_of(const std::string& sysfs_root, const DeviceInfo& info) {
  const std::optional<pci::Function> function = pci::read_function(info.source);
  if (!function) return std::nullopt;
  return kfd_card(kfd_nodes(sysfs_root),
                  {function->address, function->device, drm::nodes_of(function->path).render});
}

}  // namespace

Result<Done> AmdContext::open(const DeviceInfo& info) {
  std::error_code error;
  if (!std::filesystem::is_directory(info.source, error)) return Error(info.source + ": not there");
  paths_ = AmdPaths(info.source);
  kfd_ = kfd_of(sysfs_root_, info);
  files_.clear();
  texts_.clear();
  lines_.clear();
  pairs_.clear();
  masks_.clear();
  entries_.clear();
  runtime_status_ = sysfs::File(info.source + "/power/runtime_status");
  blob_file_ = sysfs::File(info.source + "/gpu_metrics");
  blob_is_fresh_ = false;
  read_runtime_status();
  return Done{};
}

Readiness AmdContext::begin_pass(const Pass&) noexcept {
  const bool lost = files_.lost();
  files_.begin_pass();
  lines_.begin_pass();
  blob_is_fresh_ = false;
  return lost ? Readiness::gone : read_runtime_status();
}

// A kernel without runtime power management has no such file, and its cards do not sleep.
Readiness AmdContext::read_runtime_status() noexcept {
  std::array<char, 32> buffer{};
  const bool exists = runtime_status_.status() == ReadStatus::ok;
  const sysfs::Bytes bytes = runtime_status_.read(buffer);
  if (exists && bytes.status == ReadStatus::gone) return Readiness::gone;
  awake_ = !pci::is_suspended(sysfs::trimmed({buffer.data(), bytes.size}));
  return awake_ ? Readiness::awake : Readiness::asleep;
}

std::optional<int> AmdContext::file(std::string_view name) {
  const std::optional<std::string> path = paths_.resolve(name);
  return path ? files_.open(*path) : std::nullopt;
}

std::optional<int> AmdContext::constant_file(std::string_view name) {
  const std::optional<std::string> path = paths_.resolve(name);
  return path ? files_.open_constant(*path) : std::nullopt;
}

std::optional<int> AmdContext::text_file(std::string_view name) {
  const std::optional<std::string> path = paths_.resolve(name);
  if (!path) return std::nullopt;
  sysfs::File file(*path);
  if (file.status() == ReadStatus::gone) return std::nullopt;
  texts_.push_back(std::move(file));
  return static_cast<int>(texts_.size()) - 1;
}

std::optional<int> AmdContext::lines_file(std::string_view name) {
  const std::optional<std::string> path = paths_.resolve(name);
  return path ? lines_.open(*path) : std::nullopt;
}

bool AmdContext::has_blob_field(std::size_t field) noexcept {
  if (blob_file_.status() == ReadStatus::gone) return false;
  return !awake_ || blob().has(field);
}

int AmdContext::keep(Pair files) {
  pairs_.push_back(files);
  return static_cast<int>(pairs_.size()) - 1;
}

int AmdContext::keep(std::uint64_t mask) {
  masks_.push_back(mask);
  return static_cast<int>(masks_.size()) - 1;
}

int AmdContext::keep(Entry entry) {
  entries_.push_back(entry);
  return static_cast<int>(entries_.size()) - 1;
}

sysfs::Bytes AmdContext::text(int text_file, std::span<char> buffer, std::size_t offset) const noexcept {
  return texts_[static_cast<std::size_t>(text_file)].read(buffer, offset);
}

const GpuMetricsBlob& AmdContext::blob() noexcept {
  if (!blob_is_fresh_) blob_.read(blob_file_);
  blob_is_fresh_ = true;
  return blob_;
}

}  // namespace gpumeter::amd
