#include "collectors/nvidia/nvidia_collector.hpp"

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collectors/api/event_source.hpp"
#include "collectors/nvidia/nvidia_context.hpp"
#include "collectors/nvidia/nvidia_identity.hpp"
#include "collectors/nvidia/nvml_text.hpp"
#include "collectors/support/metric_table.hpp"
#include "collectors/support/pci.hpp"

namespace gpumeter::nvidia {
namespace {

std::string option(const CollectorContext& context, const CollectorOption& schema) {
  const auto given = context.options.find(std::string(schema.name));
  const bool is_given = given != context.options.end() && !given->second.empty();
  return is_given ? given->second.front() : std::string(schema.fallback);
}

/// GPUs of the bus that NVML will not see, and why; `has_own` is set where there is one that it should.
std::vector<std::string> notes_of_bus(const std::string& sysfs_root, bool& has_own) {
  std::vector<std::string> notes;
  for (const pci::Function& function : pci::display_adapters(sysfs_root)) {
    if (function.vendor != pci::kVendorNvidia) continue;
    has_own = has_own || function.driver == "nvidia" || function.driver.empty();
    if (function.driver == "nvidia" || function.driver.empty()) continue;
    notes.push_back(pci::to_string(function.address) + ": NVIDIA GPU bound to " + function.driver +
                    (function.driver.starts_with("vfio")
                         ? ", so it is a virtual machine's and not read"
                         : ", so it is not read; NVIDIA's driver would make it readable"));
  }
  return notes;
}

class NvidiaCollector final : public Collector, public WatchesEvents {
 public:
  NvidiaCollector(std::string sysfs_root, NvidiaOptions options, const Clock& clock)
      : sysfs_root_(std::move(sysfs_root)), options_(std::move(options)), clock_(clock) {}

  Result<Discovery> discover() override {
    Discovery found;
    bool has_own = false;
    found.notes = notes_of_bus(sysfs_root_, has_own);
    const Result<std::shared_ptr<NvmlSession>> session = present_session();
    if (!session && is_absent(session.error()) && !has_own) return found;  // a machine without NVIDIA
    if (!session) return session.error();
    find_gpus(*session, found);
    if ((*session)->is_dead()) return Error(options_.library + ": the driver went away meanwhile");
    return found;
  }

  std::unique_ptr<Device> device(const DeviceInfo&) override {
    return std::make_unique<TableDevice<NvidiaContext>>(NvidiaContext(options_), nvidia_rows(),
                                                        nvidia_partition_rows());
  }

  std::vector<DeviceEvent> wait_for_events(Nanoseconds at_most) override {
    const std::shared_ptr<NvmlSession> session = session_of_events();
    if (!session) {
      std::this_thread::sleep_for(at_most);
      return {};
    }
    EventListener::Heard heard = session->listener().wait(at_most, clock_);
    if (blame_of(heard.result) == Blame::library) session->condemn();
    return std::move(heard.events);
  }

 private:
  // A dead session is let go here, by the lanes at their next pass, and by the event thread: the last one
  // ends it.
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

  std::shared_ptr<NvmlSession> session_of_events() {
    MutexLock lock(mutex_);
    return session_ && !session_->is_dead() ? session_ : nullptr;
  }

  void find_gpus(const std::shared_ptr<NvmlSession>& session, Discovery& found) const {
    NvmlCaller system(session, nullptr);
    unsigned count = 0;
    if (system.call_plain<&F::nvmlDeviceGetCount_v2>(&count) != nvml::kSuccess) return;
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
  }

  const std::string sysfs_root_;
  const NvidiaOptions options_;
  const Clock& clock_;
  Mutex mutex_;
  std::shared_ptr<NvmlSession> session_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace

Result<Done> check_nvidia(const CollectorContext& context) {
  const std::string links = option(context, kNvidiaOptions[1]);
  if (links == "sum" || links == "each") return Done{};
  return Error("links: \"" + links + "\" is neither sum nor each");
}

Result<std::unique_ptr<Collector>> open_nvidia(const CollectorContext& context) {
  NvidiaOptions options{option(context, kNvidiaOptions[0]), option(context, kNvidiaOptions[1]) == "each"};
  std::unique_ptr<Collector> collector =
      std::make_unique<NvidiaCollector>(context.sysfs_root, std::move(options), *context.clock);
  return collector;
}

}  // namespace gpumeter::nvidia
