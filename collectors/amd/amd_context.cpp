#include "collectors/amd/amd_context.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "collectors/support/drm.hpp"
#include "collectors/support/pci.hpp"

namespace gpumeter::amd {

Result<Done> AmdContext::open(const DeviceInfo& info) {
  std::error_code error;
  if (!std::filesystem::is_directory(info.source, error)) return Error(info.source + ": not there");
  paths_ = AmdPaths(info.source);
  files_.clear();
  texts_.clear();
  lines_.clear();
  pairs_.clear();
  flags_.clear();
  entries_.clear();
  residencies_.clear();
  power_ = RuntimePower(info.source);
  sleep_ = SleepPolicy();
  busy_ = file("gpu_busy_percent");
  memory_used_ = file("mem_info_vram_used");
  blob_file_ = sysfs::File(info.source + "/gpu_metrics");
  blob_is_fresh_ = false;
  chip_ = Chip::other;
  const std::optional<PowerState> state = power_.read();
  awake_ = !state || !state->suspended;
  find_topology(info);
  return Done{};
}

void AmdContext::close() noexcept { *this = AmdContext(std::move(sysfs_root_)); }

// After the rest: how many partitions there are may be for gpu_metrics to tell, which a sleeping card is not
// asked.
void AmdContext::find_topology(const DeviceInfo& info) {
  static constexpr std::size_t kCount = known_blob_field("num_partition");
  kfd_.reset();
  partitions_.clear();
  partition_nodes_.clear();
  processes_.close();
  const std::optional<pci::Function> function = pci::read_function(info.source);
  if (!function) return;
  chip_ = chip_of(function->device);
  const std::vector<KfdNode> nodes = kfd_nodes_of(
      kfd_nodes(sysfs_root_), {function->address, function->device, drm::nodes_of(function->path).render});
  kfd_ = kfd_whole(nodes);
  processes_.open(sysfs_root_, nodes);
  std::vector<std::uint32_t> gpu_ids;
  for (const KfdNode& node : nodes) gpu_ids.push_back(node.gpu_id);
  users_ = AmdUsers(info.source, sysfs_root_, std::move(gpu_ids));
  const std::uint64_t told = awake_ ? blob().raw(kCount).value_or(0) : 0;
  for (const AmdPartition& part : partitions_of(partition_modes(info.source), nodes, told)) {
    partitions_.push_back(part.partition);
    partition_nodes_.push_back(part.node);
  }
}

Readiness AmdContext::begin_pass(const Pass& pass) noexcept {
  const bool lost = files_.lost();
  files_.begin_pass();
  lines_.begin_pass();
  blob_is_fresh_ = false;
  const std::optional<PowerState> state = power_.read();
  if (lost || !state) return Readiness::gone;
  awake_ = !state->suspended;
  const bool may_be_read = may_read(pass, *state);
  processes_.allow_hardware(may_be_read);
  return may_be_read ? Readiness::awake : Readiness::asleep;
}

// The fast tier alone looks whether something runs; the others go by what it found.
bool AmdContext::may_read(const Pass& pass, const PowerState& state) noexcept {
  const bool looks = pass.tier == Tier::fast && state.may_suspend;
  if (looks && (memory_has_changed() || users_.any())) sleep_.stir(pass.now);
  const SleepPolicy::Verdict verdict = sleep_.decide(pass.now, state);
  if (verdict == SleepPolicy::Verdict::rest) return false;
  if (looks && is_busy()) {
    sleep_.stir(pass.now);
  } else if (verdict == SleepPolicy::Verdict::look) {
    if (looks) sleep_.looked(pass.now);
    return looks;
  }
  return true;
}

// What the rows of this pass read as well, so it costs no further call. A card that tells neither is judged
// by its memory alone.
bool AmdContext::is_busy() noexcept {
  static constexpr std::size_t kActivity = blob_field("average_gfx_activity");
  const Sample busy = busy_ ? files_.read(*busy_) : blob().value(kActivity);
  return busy.status == ReadStatus::ok && busy.value > 0;
}

bool AmdContext::memory_has_changed() noexcept {
  if (!memory_used_) return false;
  const Sample used = files_.read(*memory_used_);
  if (used.status != ReadStatus::ok) return false;
  return std::exchange(last_memory_used_, used.value) != used.value;
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

bool AmdContext::has_blob_field(std::size_t field, std::size_t element) noexcept {
  if (blob_file_.status() == ReadStatus::gone || is_never_filled(chip_, fields::kAll[field].name))
    return false;
  return !awake_ || blob().has(field, element);
}

int AmdContext::keep(Pair files) {
  pairs_.push_back(files);
  return static_cast<int>(pairs_.size()) - 1;
}

int AmdContext::keep(Flags flags) {
  flags_.push_back(flags);
  return static_cast<int>(flags_.size()) - 1;
}

int AmdContext::keep(const ThrottleResidency& residency) {
  residencies_.push_back(residency);
  return static_cast<int>(residencies_.size()) - 1;
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
