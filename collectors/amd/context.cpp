#include "collectors/amd/context.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "collectors/sources/drm.hpp"
#include "collectors/sources/pci.hpp"

namespace gpumeter::amd {
namespace {

bool has_text(sysfs::File& file) noexcept {
  std::array<char, 64> buffer{};
  const sysfs::Bytes bytes = read_again(file, buffer);
  return bytes.status == ReadStatus::ok && !sysfs::trimmed({buffer.data(), bytes.size}).empty();
}

}  // namespace

Result<Done> AmdContext::open(const DeviceInfo& info) {
  std::error_code error;
  if (!std::filesystem::is_directory(info.source, error)) return Error(info.source + ": does not exist");
  paths_ = AmdPaths(info.source);
  files_.clear();
  texts_.clear();
  lines_.clear();
  power_ = RuntimePower(info.source);
  sleep_ = SleepPolicy();
  busy_ = file("gpu_busy_percent");
  memory_used_ = file("mem_info_vram_used");
  find_clients(info);
  blob_file_ = sysfs::File(info.source + "/gpu_metrics");
  blob_is_fresh_ = false;
  chip_ = Chip::other;
  const std::optional<PowerState> state = power_.read();
  awake_ = !state || !state->suspended;
  is_bound_asleep_ = !awake_;
  has_pcie_link_ = !awake_ || !pci::has_placeholder_link(paths_.upstream());
  find_topology(info);
  return Done{};
}

void AmdContext::close() noexcept {
  if (events_) options_.events->forget(uuid_);
  *this = AmdContext(std::move(sysfs_root_), std::move(options_));
}

// Only APUs have the sensor vddnb (kernel 6.12, amdgpu_pm.c, hwmon_attributes_visible). Their video memory is
// a part of the host's, and most buffers are in the rest of it.
void AmdContext::find_clients(const DeviceInfo& info) {
  const bool is_integrated = paths_.resolve("hwmon/in{vddnb}_input").has_value();
  gtt_used_ = is_integrated ? file("mem_info_gtt_used") : std::nullopt;
  client_counters_ = {};
  client_lists_ = fdinfo::ProcessLists(is_integrated ? fdinfo::MemoryKind::all : fdinfo::MemoryKind::device);
  const bool has_clients = info.driver == "amdgpu";  // radeon prints none
  clients_ = fdinfo::DeviceWatch(has_clients ? options_.drm_users : nullptr, info.pci_address);
}

ReadStatus AmdContext::processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept {
  const ReadStatus compute = processes_.read(pass, out);
  const ReadStatus clients = client_lists_.read(clients_, pass.now, memory_in_use(), out);
  if (compute == ReadStatus::ok || clients == ReadStatus::ok) return ReadStatus::ok;
  return compute == ReadStatus::unsupported ? clients : compute;
}

// amdgpu reads both from its own accounting, so that no card wakes.
std::optional<double> AmdContext::memory_in_use() noexcept {
  const Sample vram = memory_used_ ? files_.read(*memory_used_) : Sample::miss(ReadStatus::unsupported);
  if (vram.status != ReadStatus::ok) return std::nullopt;
  if (!gtt_used_) return vram.value;
  const Sample gtt = files_.read(*gtt_used_);
  return gtt.status == ReadStatus::ok ? std::optional(vram.value + gtt.value) : std::nullopt;
}

// Runs last: the number of partitions may come from gpu_metrics, which is not read from a sleeping card.
void AmdContext::find_topology(const DeviceInfo& info) {
  static constexpr std::size_t kCount = known_blob_field("num_partition");
  kfd_.reset();
  partitions_.clear();
  partition_nodes_.clear();
  processes_.close();
  events_.reset();
  const std::optional<pci::Function> function = pci::read_function(info.source);
  if (!function) return;
  chip_ = chip_of(function->device);
  const std::vector<KfdNode> nodes = kfd_nodes_of(
      kfd_nodes(sysfs_root_), {function->address, function->device, drm::nodes_of(function->path).render});
  kfd_ = kfd_whole(nodes);
  processes_.open(sysfs_root_, nodes);
  std::vector<std::uint32_t> gpu_ids;
  for (const KfdNode& node : nodes) gpu_ids.push_back(node.gpu_id);
  uuid_ = info.uuid;
  if (options_.events && !gpu_ids.empty()) events_ = options_.events->listen(uuid_, gpu_ids);
  users_ = AmdUsers(info.source, sysfs_root_, std::move(gpu_ids));
  const std::uint64_t reported = awake_ ? blob().raw(kCount).value_or(0) : 0;
  for (const AmdPartition& part : partitions_of(partition_modes(info.source), nodes, reported)) {
    partitions_.push_back(part.partition);
    partition_nodes_.push_back(part.node);
  }
}

Readiness AmdContext::begin_pass(const Pass& pass) noexcept {
  const bool lost = files_.lost();
  files_.begin_pass();
  lines_.begin_pass();
  blob_is_fresh_ = false;
  is_after_gap_ = pass.elapsed == Nanoseconds{0};
  const std::optional<PowerState> state = power_.read();
  if (lost || !state) return Readiness::gone;
  awake_ = !state->suspended;
  client_counters_.begin_pass(clients_, pass.now);
  const bool may_be_read = may_read(pass, *state);
  processes_.allow_hardware(may_be_read);
  return may_be_read ? Readiness::awake : Readiness::asleep;
}

void AmdContext::end_binding() {
  is_blob_unread_ = awake_ && blob_file_.status() != ReadStatus::gone && blob().status() != ReadStatus::ok;
  const bool lacks_numbers = files_.note_unanswered();
  const bool lacks_lines = lines_.note_unanswered();
  if (!awake_) texts_.clear();
  std::erase_if(texts_, [](const auto& file) { return has_text(*file); });
  is_provisional_ = is_bound_asleep_ || is_blob_unread_ || lacks_numbers || lacks_lines || !texts_.empty() ||
                    !paths_.unreadable().empty();
  look_again_at_ = {};
}

// Many cards have a file that never returns a value, so the look must be cheap: it reads only what was
// missing.
bool AmdContext::has_more(Nanoseconds now) noexcept try {
  constexpr auto kLookEvery = std::chrono::seconds(4);
  if (!is_provisional_ || !awake_) return false;
  if (is_bound_asleep_) return true;
  if (look_again_at_ == Nanoseconds{0}) look_again_at_ = now + kLookEvery;
  if (now < look_again_at_) return false;
  look_again_at_ = now + kLookEvery;
  if (is_blob_unread_ && blob().status() == ReadStatus::ok) return true;
  if (files_.answers_now() || lines_.answers_now()) return true;
  if (std::any_of(texts_.begin(), texts_.end(), [](const auto& file) { return has_text(*file); }))
    return true;
  const std::vector<std::string>& unreadable = paths_.unreadable();
  return std::any_of(unreadable.begin(), unreadable.end(),
                     [](const std::string& path) { return sysfs::probe(path) == ReadStatus::ok; });
} catch (const std::exception&) {  // out of memory
  return false;
}

// Only the fast tier checks whether the card is in use; the other tiers use its result.
bool AmdContext::may_read(const Pass& pass, const PowerState& state) noexcept {
  const auto is_used = [this] { return memory_has_changed() || users_.any(); };
  return sleep_.may_read(pass.now, state, pass.tier == Tier::fast, is_used, [this] { return is_busy(); });
}

// The rows of this pass read the same value, so the check costs no further call. A card that has neither
// source is judged by its memory alone.
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

std::shared_ptr<sysfs::File> AmdContext::text_file(std::string_view name) {
  const std::optional<std::string> path = paths_.resolve(name);
  if (!path) return nullptr;
  auto file = std::make_shared<sysfs::File>(*path);
  if (file->status() == ReadStatus::gone) return nullptr;
  texts_.push_back(file);
  return file;
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

void AmdContext::read_blob() noexcept {
  static constexpr std::size_t kIndependent = known_blob_field("indep_throttle_status");
  static constexpr std::size_t kOfChip = known_blob_field("throttle_status");
  if (blob_file_.status() != ReadStatus::ok) blob_file_.retry();
  blob_.read(blob_file_);
  blob_is_fresh_ = true;
  throttlers_ = {blob_.flags(kIndependent), blob_.flags(kOfChip)};
}

}  // namespace gpumeter::amd
