#include "collectors/amd/card.hpp"

#include <algorithm>

#include "collectors/sources/drm.hpp"
#include "collectors/sources/pci.hpp"

namespace gpumeter::amd {

void AmdCard::open(files::Context& context, const DeviceInfo& info, const files::PowerState&) {
  *this = AmdCard(std::move(sysfs_root_), std::move(options_));
  context_ = &context;
  uuid_ = info.uuid;
  blob_file_ = sysfs::File(info.source + "/gpu_metrics");
  find_memory();
  find_topology(info);
}

void AmdCard::close() noexcept {
  if (events_) options_.events->forget(uuid_);
  *this = AmdCard(std::move(sysfs_root_), std::move(options_));
}

// Only APUs have the sensor vddnb (kernel 6.12, amdgpu_pm.c, hwmon_attributes_visible). Their video memory is
// a part of the host's, and most buffers are in the rest of it.
void AmdCard::find_memory() {
  busy_ = context_->number_file("gpu_busy_percent");
  memory_used_ = context_->number_file("mem_info_vram_used");
  if (!context_->paths().resolve("hwmon/in{vddnb}_input")) return;
  gtt_used_ = context_->number_file("mem_info_gtt_used");
  context_->count_memory(fdinfo::MemoryKind::all);
}

// Runs last: the number of partitions may come from gpu_metrics, which is not read from a sleeping card.
void AmdCard::find_topology(const DeviceInfo& info) {
  static constexpr std::size_t kCount = known_blob_field("num_partition");
  const std::optional<pci::Function> function = pci::read_function(info.source);
  if (!function) return;
  chip_ = chip_of(function->device);
  const std::vector<KfdNode> nodes = kfd_nodes_of(
      kfd_nodes(sysfs_root_), {function->address, function->device, drm::nodes_of(function->path).render});
  kfd_ = kfd_whole(nodes);
  processes_.open(sysfs_root_, nodes);
  std::vector<std::uint32_t> gpu_ids;
  for (const KfdNode& node : nodes) gpu_ids.push_back(node.gpu_id);
  if (options_.events && !gpu_ids.empty()) events_ = options_.events->listen(uuid_, gpu_ids);
  users_ = ComputeUsers(sysfs_root_, std::move(gpu_ids));
  const std::uint64_t reported = context_->awake() ? blob().raw(kCount).value_or(0) : 0;
  std::vector<Partition> partitions;
  for (AmdPartition& part : partitions_of(partition_modes(info.source), nodes, reported)) {
    partitions.push_back(std::move(part.partition));
    partition_nodes_.push_back(part.node);
  }
  context_->divide(std::move(partitions));
}

bool AmdCard::is_used() noexcept { return memory_has_changed() || users_.any(); }

bool AmdCard::memory_has_changed() noexcept {
  if (!memory_used_) return false;
  const Sample used = context_->number(*memory_used_);
  if (used.status != ReadStatus::ok) return false;
  return std::exchange(last_memory_used_, used.value) != used.value;
}

// The rows of this pass read the same value, so the check costs no further call. A card that has neither
// source is judged by its memory alone.
bool AmdCard::is_busy() noexcept {
  static constexpr std::size_t kActivity = blob_field("average_gfx_activity");
  const Sample busy = busy_ ? context_->number(*busy_) : blob().value(kActivity);
  return busy.status == ReadStatus::ok && busy.value > 0;
}

bool AmdCard::is_unread() noexcept {
  return context_->awake() && blob_file_.status() != ReadStatus::gone && blob().status() != ReadStatus::ok;
}

ReadStatus AmdCard::processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept {
  processes_.allow_hardware(context_->is_read());
  return processes_.read(pass, out);
}

// amdgpu reads both from its own accounting, so that no card wakes.
std::optional<double> AmdCard::memory_in_use() noexcept {
  const Sample vram = memory_used_ ? context_->number(*memory_used_) : Sample::miss(ReadStatus::unsupported);
  if (vram.status != ReadStatus::ok) return std::nullopt;
  if (!gtt_used_) return vram.value;
  const Sample gtt = context_->number(*gtt_used_);
  return gtt.status == ReadStatus::ok ? std::optional(vram.value + gtt.value) : std::nullopt;
}

bool AmdCard::has_blob_field(std::size_t field, std::size_t element) noexcept {
  if (blob_file_.status() == ReadStatus::gone || is_never_filled(chip_, fields::kAll[field].name))
    return false;
  return !context_->awake() || blob().has(field, element);
}

void AmdCard::read_blob() noexcept {
  static constexpr std::size_t kIndependent = known_blob_field("indep_throttle_status");
  static constexpr std::size_t kOfChip = known_blob_field("throttle_status");
  if (blob_file_.status() != ReadStatus::ok) blob_file_.retry();
  blob_.read(blob_file_);
  blob_is_fresh_ = true;
  throttlers_ = {blob_.flags(kIndependent), blob_.flags(kOfChip)};
}

}  // namespace gpumeter::amd
