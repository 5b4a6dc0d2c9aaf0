#include "collectors/nvidia/context.hpp"

#include <cstdio>
#include <cstring>
#include <utility>

#include "collectors/api/event_ledger.hpp"
#include "collectors/nvidia/identity.hpp"

namespace gpumeter::nvidia {
namespace {

// nullopt: unknown at present. If the driver lacks this call, gpumeter registers for all events.
std::optional<std::uint64_t> types_told(NvmlCaller& gpu) {
  std::uint64_t types = 0;
  const unsigned result = gpu.call<&F::nvmlDeviceGetSupportedEventTypes>(&types);
  if (is_passing_trouble(result)) return std::nullopt;
  return result == nvml::kFunctionNotFound ? heard_types() : types;
}

// An unloaded driver is not a fault of the GPU.
std::optional<Event> event_of_loss(unsigned result) noexcept {
  if (result == nvml::kResetRequired) return Event::reset_required;
  return blame_of(result) == Blame::device ? std::optional(Event::bus_lost) : std::nullopt;
}

}  // namespace

// A GPU that is bound again keeps its session and its event registration. If the driver cannot list its
// events at that time, the previous types stay in force.
Result<Done> NvidiaContext::open(const DeviceInfo& info) {
  if (is_lost()) close();
  Result<std::shared_ptr<NvmlSession>> session = NvmlSession::shared(options_.library);
  const std::optional<NvmlCaller> gpu = session ? find_gpu(*session, info.uuid) : std::nullopt;
  if (!gpu) close();
  if (!session) return session.error();
  if (!gpu) return Error(options_.library + " does not find " + info.uuid);
  close_sources();
  unsettled_.open();
  NvmlTarget& target = targets_.emplace_back(*gpu);
  target.gpm.open(target.caller, std::nullopt);
  const std::shared_ptr<Dcgm> dcgm = options_.dcgm.lock();
  if (dcgm && !dcgm_ && target.gpm.opened() == ReadStatus::unsupported) dcgm_ = dcgm->gpu(info.uuid);
  open_partitions();
  find_constants(info.driver_version);
  find_unified_memory(info);
  platform_ = platform_labels(target.caller);
  inventory_ = inventory_labels(target.caller);
  const std::optional<std::uint64_t> types = types_told(target.caller);
  const bool has_listener = has_events((*session)->functions());
  event_types_ = has_listener ? types.value_or(event_types_) & heard_types() : 0;
  is_open_troubled_ = target.caller.was_troubled();
  pci_address_ = info.pci_address;
  links_.begin_pass();
  links_.open(NvmlCaller(target.caller.session(), target.caller.device()));
  listen(info.uuid);
  if (std::exchange(was_lost_, false)) events_->count(Event::returned);
  return Done{};
}

void NvidiaContext::close() noexcept {
  stop_listening();
  close_sources();
  dcgm_.reset();
  cycle_unit_ = 0;
}

void NvidiaContext::listen(const std::string& uuid) {
  const NvmlCaller& caller = gpu().caller;
  const bool is_same = listened_session_.lock() == caller.session() && listened_device_ == caller.device() &&
                       listened_types_ == event_types_;
  if (is_same) return;
  stop_listening();
  const LoggedGpu logged{pci_address_, options_.ledger};
  caller.session()->listener().listen({caller.device(), event_types_, uuid, events_, logged});
  caller.session()->operational().listen(uuid, events_, logged);
  listened_session_ = caller.session();
  listened_device_ = caller.device();
  listened_types_ = event_types_;
}

// The log reports XIDs also while the library refuses to, and those of the time before the start.
void NvidiaContext::count_logged_xids() {
  if (options_.ledger == nullptr) return;
  options_.ledger->take_xids(
      pci_address_, [this](std::uint64_t xid, unsigned instance, std::uint64_t times, Nanoseconds last) {
        events_->count_logged_xid(xid, instance, times, last);
      });
}

void NvidiaContext::stop_listening() noexcept {
  if (const auto session = listened_session_.lock()) {
    session->listener().forget(listened_device_);
    session->operational().forget(events_);
  }
  listened_session_.reset();
}

// GPM samples are released before the session, which may end here.
void NvidiaContext::close_sources() noexcept {
  buffers_.clear();
  fields_ = {};
  partitions_.clear();
  targets_.clear();
  processes_.close();
  turned_to_ = 0;
  has_wide_bytes_ = false;
  fabric_.reset();
  unified_memory_.reset();
}

bool NvidiaContext::has_more(Nanoseconds now) noexcept try {
  bool has_changed = fabric_ != shown_fabric_ || cycle_unit_ != bound_cycle_unit_ ||
                     events_->operational().size() != shown_kinds_ ||
                     (!options_.each_link && links_.has_changed());
  if ((!unsettled_.empty() || is_open_troubled_) && unsettled_.is_time(now)) {
    has_changed = unsettled_.look() || has_changed;
    has_changed = (is_open_troubled_ && opens_well()) || has_changed;
  }
  if (has_changed) unsettled_.bind_again();
  return has_changed;
} catch (const std::exception&) {  // out of memory
  return false;
}

// Makes the calls of open() that no row makes.
bool NvidiaContext::opens_well() {
  NvmlCaller probe(gpu().caller.session(), gpu().caller.device());
  mig_instances(probe);
  peak_facts(probe);
  has_own_memory(probe);
  platform_labels(probe);
  inventory_labels(probe);
  types_told(probe);
  return !probe.was_troubled();
}

void NvidiaContext::note_fabric(const nvml::FabricInfoV3& info) noexcept {
  fabric_.reset();
  if (info.state != nvml::kFabricCompleted || info.status != nvml::kSuccess) return;
  Fabric& fabric = fabric_.emplace(Fabric{info.clique, {}});
  std::memcpy(fabric.cluster.data(), info.cluster_uuid, fabric.cluster.size());
}

std::vector<SeriesSpec> NvidiaContext::info_series() {
  std::vector<SeriesSpec> series = fabric_series();
  if (!platform_.empty()) series.push_back({&catalog::platform_info, platform_});
  if (!inventory_.empty()) series.push_back({&catalog::inventory_info, inventory_});
  return series;
}

std::vector<SeriesSpec> NvidiaContext::counted_series() {
  const std::vector<OperationalKind> kinds = events_->operational().kinds();
  shown_kinds_ = kinds.size();
  std::vector<SeriesSpec> series;
  for (const OperationalKind& kind : kinds) {
    series.push_back({&catalog::operational_events,
                      {{"module", kind.module}, {"code", kind.code}, {"severity", kind.severity}}});
  }
  return series;
}

// A node whose GPUs have their own NVSwitches belongs to no cluster: its UUID is zero.
std::vector<SeriesSpec> NvidiaContext::fabric_series() {
  shown_fabric_ = fabric_;
  if (!fabric_) return {};
  std::vector<Label> labels = {{"clique", std::to_string(fabric_->clique)}};
  if (fabric_->cluster != std::array<unsigned char, 16>{})
    labels.push_back({"cluster_uuid", uuid_text(fabric_->cluster)});
  return {{&catalog::fabric_info, std::move(labels)}};
}

void NvidiaContext::open_partitions() {
  const std::vector<MigInstance> instances = mig_instances(gpu().caller);
  if (std::exchange(mig_fingerprint_, fingerprint(instances)) != mig_fingerprint_)
    events_->forget_instances();
  std::vector<GpmSampler*> samplers;
  for (const MigInstance& instance : instances) {
    NvmlTarget& target =
        targets_.emplace_back(NvmlCaller(gpu().caller.session(), instance.handle), instance.gpu_instance);
    target.gpm.open(gpu().caller, instance.gpu_instance);
    samplers.push_back(&target.gpm);
    partitions_.push_back(instance.partition);
  }
  processes_.open(gpu().caller, instances, samplers);
}

void NvidiaContext::find_constants(std::string_view driver) {
  const Facts facts = peak_facts(gpu().caller);
  peaks_ = peaks_of(facts);
  peak_bandwidth_ = memory_bandwidth_of(facts);
  peak_clock_ = peak_clock_of(facts);
  multiprocessors_ = multiprocessors_of(facts).value_or(0);
  bound_cycle_unit_ = cycle_unit_;
  sensors_ = power_sensors(NvmlCaller(gpu().caller.session(), gpu().caller.device()), facts, driver);
}

// Grace's GPU has memory of its own, which is a NUMA node of the host.
void NvidiaContext::find_unified_memory(const DeviceInfo& info) {
  if (info.memory_numa_node || has_own_memory(gpu().caller)) return;
  HostMemoryFile host(options_.procfs);
  if (host.read().status == ReadStatus::ok) unified_memory_.emplace(std::move(host));
}

bool NvidiaContext::is_lost() const noexcept {
  if (targets_.empty() || processes_.is_lost()) return true;
  for (const NvmlTarget& target : targets_) {
    if (target.is_lost()) return true;
  }
  return false;
}

Readiness NvidiaContext::begin_pass(const Pass& pass) noexcept {
  count_logged_xids();
  const bool is_time = pass.tier == Tier::normal && !mig_fingerprint_.empty();
  if ((was_told_of_new_partitions() || is_time) && !is_lost() && has_new_partitions())
    was_divided_anew_ = true;
  if (is_lost() || was_divided_anew_) {
    note_loss();
    close();
    return Readiness::gone;
  }
  now_ = pass.now;
  elapsed_ = pass.elapsed;
  ++pass_;
  for (NvmlTarget& target : targets_) target.begin_pass();
  links_.begin_pass();
  if (unified_memory_) unified_memory_->begin_pass();
  fields_[static_cast<std::size_t>(pass.tier)].begin_pass();
  return Readiness::awake;
}

// The event thread counts such events, so a new division is seen at the next pass of any tier.
bool NvidiaContext::was_told_of_new_partitions() noexcept {
  const std::uint64_t changes = events_->count_of(Event::mig_config_change);
  return std::exchange(mig_changes_, changes) != changes;
}

// New instances reuse the ids of old ones, whose handles are void, so the GPU is attached again. A list that
// is incomplete because a call failed does not count as a change, unless the list at attach was incomplete
// too.
bool NvidiaContext::has_new_partitions() noexcept {
  try {
    NvmlCaller probe(gpu().caller.session(), gpu().caller.device());
    const bool is_other = fingerprint(mig_instances(probe)) != mig_fingerprint_;
    gpu().caller.blame(probe.lost_by());
    return is_other && !probe.is_lost() && (is_open_troubled_ || !probe.was_troubled());
  } catch (const std::exception&) {  // out of memory: retried at the next pass
    return false;
  }
}

void NvidiaContext::note_loss() noexcept {
  if (std::exchange(was_divided_anew_, false) || targets_.empty() || was_lost_) return;
  was_lost_ = true;
  for (const NvmlTarget& target : targets_) {
    const std::optional<Event> event = event_of_loss(target.lost_by());
    if (event) return events_->count(*event);
  }
  if (const auto event = event_of_loss(processes_.lost_by())) events_->count(*event);
}

NvidiaContext::OpenedBuffer NvidiaContext::buffer_of(nvml::SamplingType type) {
  for (const std::shared_ptr<SampleBuffer>& known : buffers_) {
    if (known->type() == type) return {known, ReadStatus::ok};
  }
  auto fresh = std::make_shared<SampleBuffer>(type);
  const ReadStatus status = fresh->open(gpu().caller);
  if (status != ReadStatus::ok) return {nullptr, status};
  buffers_.push_back(fresh);
  return {std::move(fresh), status};
}

}  // namespace gpumeter::nvidia
