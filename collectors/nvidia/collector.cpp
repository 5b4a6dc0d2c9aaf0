#include "collectors/nvidia/collector.hpp"

#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collectors/api/event_source.hpp"
#include "collectors/nvidia/identity.hpp"
#include "collectors/sources/pci.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/table/device.hpp"

namespace gpumeter::nvidia {
namespace {

/// NVIDIA's GPUs as the bus shows them, without a call to any of them.
struct Bus {
  std::vector<std::string> notes;  ///< why a GPU is not visible to NVML
  int awake = 0;                   ///< GPUs that NVML should see
  int asleep = 0;
  std::map<std::string, int> numa_nodes;          ///< by PCI address
  std::map<std::string, std::string> local_cpus;  ///< the same
};

std::string note_of(const pci::Function& function) {
  const std::string card = pci::to_string(function.address) + ": NVIDIA GPU bound to " + function.driver;
  if (function.driver.starts_with("vfio"))
    return card + ", so it belongs to a virtual machine and is not read";
  return card + ", so this collector does not read it; NVIDIA's driver would make it readable";
}

Bus look_at_bus(const std::string& sysfs_root, pci::Scan& scan) {
  Bus bus;
  for (const pci::Function& function : scan.adapters(sysfs_root).adapters) {
    if (function.vendor != pci::kVendorNvidia) continue;
    if (const auto node = pci::numa_node(function))
      bus.numa_nodes.emplace(pci::to_string(function.address), *node);
    bus.local_cpus.emplace(pci::to_string(function.address), pci::local_cpus(function));
    const bool is_ours = function.driver.empty() || function.driver == "nvidia";
    const bool sleeps = pci::is_suspended(sysfs::read_text(function.path + "/power/runtime_status"));
    if (!is_ours) bus.notes.push_back(note_of(function));
    if (is_ours) ++(sleeps ? bus.asleep : bus.awake);
  }
  return bus;
}

class NvidiaCollector final : public Collector, public WatchesEvents, public ReportsSources {
 public:
  NvidiaCollector(const CollectorContext& context, NvidiaOptions options, std::shared_ptr<Dcgm> dcgm)
      : sysfs_root_(context.sysfs_root),
        dcgm_(std::move(dcgm)),
        options_(std::move(options)),
        clock_(*context.clock),
        scan_("find-nvidia-pci", *context.clock, pci::read_function, context.hanging) {}

  // Opening a GPU wakes it, and NVML opens all of them to find one. If all GPUs sleep, discovery therefore
  // opens none.
  Result<Discovery> discover() override {
    Bus bus = look_at_bus(sysfs_root_, scan_);
    Discovery found;
    found.notes = std::move(bus.notes);
    if (bus.asleep > 0 && bus.awake == 0 && !has_session()) {
      found.notes.emplace_back("every NVIDIA GPU sleeps, so none is read until another program wakes one");
      return found;
    }
    const Result<std::shared_ptr<NvmlSession>> session = present_session();
    const bool is_elsewhere = bus.asleep + bus.awake == 0;  // no NVIDIA card, so no library either
    if (!session && is_absent(session.error()) && is_elsewhere) return found;
    if (!session) return session.error();
    const unsigned result = find_gpus(*session, found);
    if ((*session)->is_dead()) return Error(options_.library + ": the driver was unloaded during discovery");
    if (result != nvml::kSuccess) return Error(options_.library + ": " + reason_of(result));
    for (DeviceInfo& info : found.devices) {
      const auto node = bus.numa_nodes.find(info.pci_address);
      if (node != bus.numa_nodes.end()) info.numa_node = node->second;
      info.local_cpus = bus.local_cpus[info.pci_address];
    }
    if (dcgm_) note_dcgm(found);
    return found;
  }

  std::unique_ptr<Device> device(const DeviceInfo&) override {
    return std::make_unique<ListingDevice<NvidiaContext>>(NvidiaContext(options_), nvidia_rows(),
                                                          nvidia_partition_rows());
  }

  std::vector<SourceReport> sources_of(const DeviceInfo& info) const override {
    return sources_of_gpu(options_.library, info);
  }

  std::vector<DeviceEvent> wait_for_events(Nanoseconds at_most) override {
    const std::shared_ptr<NvmlSession> session = session_of_events();
    if (!session) {
      std::this_thread::sleep_for(at_most);
      return {};
    }
    EventListener::Outcome outcome = session->listener().wait(at_most, clock_);
    if (blame_of(outcome.result) == Blame::library) {
      session->condemn();
    } else {
      session->operational().take(clock_, outcome.events);
    }
    return std::move(outcome.events);
  }

 private:
  // The GPUs ask DCGM for values after the first discovery, so the second one follows soon.
  void note_dcgm(Discovery& found) {
    if (!std::exchange(has_discovered_, true)) found.is_incomplete = true;
    const std::string trouble = dcgm_->trouble();
    if (!trouble.empty()) found.notes.push_back("collectors.nvidia.dcgm: " + trouble);
  }

  // A dead session is released here, by the lanes at their next pass, and by the event thread. The last
  // release ends it.
  Result<std::shared_ptr<NvmlSession>> present_session() {
    {
      MutexLock lock(mutex_);
      if (session_ && session_->is_dead()) session_.reset();
      if (session_) return session_;
    }
    Result<std::shared_ptr<NvmlSession>> opened = NvmlSession::shared(options_.library);
    MutexLock lock(mutex_);
    if (opened) session_ = *opened;
    return opened;
  }

  bool has_session() {
    MutexLock lock(mutex_);
    return session_ != nullptr && !session_->is_dead();
  }

  std::shared_ptr<NvmlSession> session_of_events() {
    MutexLock lock(mutex_);
    return session_ && !session_->is_dead() ? session_ : nullptr;
  }

  // The return value is NVML's overall result; the results of single GPUs are in the notes.
  static unsigned find_gpus(const std::shared_ptr<NvmlSession>& session, Discovery& found) {
    NvmlCaller system(session, nullptr);
    unsigned count = 0;
    const unsigned counted = system.call_plain<&F::nvmlDeviceGetCount_v2>(&count);
    if (counted != nvml::kSuccess) return counted;
    for (unsigned i = 0; i < count; ++i) {
      nvml::Device handle = nullptr;
      const unsigned result = session->functions().nvmlDeviceGetHandleByIndex_v2(i, &handle);
      NvmlCaller gpu(session, handle);
      const std::optional<DeviceInfo> info =
          result == nvml::kSuccess ? identify(gpu, i) : std::optional<DeviceInfo>();
      if (info) found.devices.push_back(*info);
      if (!info)
        found.notes.push_back("GPU " + std::to_string(i) + " of nvidia-smi cannot be read: " +
                              reason_of(result == nvml::kSuccess ? unsigned{nvml::kGpuIsLost} : result));
    }
    return nvml::kSuccess;
  }

  const std::string sysfs_root_;
  const std::shared_ptr<Dcgm> dcgm_;  // null: off
  const NvidiaOptions options_;
  const Clock& clock_;
  pci::Scan scan_;               // used by discover()
  bool has_discovered_ = false;  // likewise
  Mutex mutex_;
  std::shared_ptr<NvmlSession> session_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace

std::optional<OptionProblem> check_nvidia(const CollectorContext& context) {
  const std::string links = option(context, kNvidiaOptions[1]);
  if (links != "sum" && links != "each")
    return OptionProblem{"links", 0, "must be sum or each, not \"" + links + '"'};
  const std::string dcgm = option(context, kNvidiaOptions[2]);
  const bool is_host = !dcgm.empty() && dcgm.find('/') == std::string::npos && !dcgm.starts_with("unix:");
  if (is_host || dcgm.starts_with("unix:/")) return std::nullopt;
  return OptionProblem{"dcgm", 0, "must be off, on, HOST, HOST:PORT or unix:/PATH, not \"" + dcgm + '"'};
}

Result<std::unique_ptr<Collector>> open_nvidia(const CollectorContext& context) {
  NvidiaOptions options{option(context, kNvidiaOptions[0]), option(context, kNvidiaOptions[1]) == "each",
                        context.procfs_root, context.events};
  const std::string address = option(context, kNvidiaOptions[2]);
  std::shared_ptr<Dcgm> dcgm;
  if (address != "off")
    dcgm = std::make_shared<Dcgm>(address == "on" ? "127.0.0.1" : address, *context.clock, context.hanging);
  options.dcgm = dcgm;
  return std::unique_ptr<Collector>(
      std::make_unique<NvidiaCollector>(context, std::move(options), std::move(dcgm)));
}

}  // namespace gpumeter::nvidia
