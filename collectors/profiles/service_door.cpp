#include "collectors/profiles/service_door.hpp"

#include <sys/eventfd.h>

#include <filesystem>
#include <utility>

#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "base/worker.hpp"

namespace gpumeter::profiles {
namespace {

ServiceOrder order_of(const Order& order, int pid) {
  const std::filesystem::path path(order.path);
  ServiceOrder out;
  out.duration = order.extent.duration;
  out.session = path.stem().string();
  out.folder = (path.parent_path() / out.session).string();
  out.host = std::to_string(pid);
  return out;
}

}  // namespace

/// An order and its thread.
class ServiceDoor::Call {
 public:
  Call(const Clock& clock, ServiceOrder order, std::function<Result<Done>()> check)
      : shared_(std::make_shared<Shared>(clock, std::move(order), std::move(check))), worker_(clock) {}
  ~Call() { eventfd_write(shared_->stopper.number(), 1); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void start() {
    const Result<Done> started =
        worker_.start("profiler-call", [shared = shared_]() -> std::optional<Nanoseconds> {
          shared->run();
          return std::nullopt;
        });
    if (!started) shared_->end({Stage::failed, started.error().message()});
  }
  Progress progress() const {
    MutexLock lock(shared_->mutex);
    return shared_->progress;
  }

 private:
  /// Also owned by the thread, which may outlive the call.
  struct Shared {
    Shared(const Clock& its_clock, ServiceOrder its_order, std::function<Result<Done>()> its_check)
        : clock(its_clock), order(std::move(its_order)), check(std::move(its_check)) {}

    void run() GPUMETER_EXCLUDES(mutex) {
      if (const Result<Done> checked = check(); !checked) {
        return end({Stage::failed, checked.error().message()});
      }
      const Result<ServiceTrace> trace = ProfilerService(clock, stopper.number()).profile(order);
      if (!trace) return end({Stage::failed, trace.error().message()});
      end(trace->is_empty ? Progress{Stage::failed, "the trace is empty"} : Progress{Stage::done, {}});
    }
    void end(Progress how) GPUMETER_EXCLUDES(mutex) {
      MutexLock lock(mutex);
      progress = std::move(how);
    }

    const Clock& clock;
    const ServiceOrder order;
    const std::function<Result<Done>()> check;
    const Descriptor stopper{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    mutable Mutex mutex;
    Progress progress GPUMETER_GUARDED_BY(mutex) = {Stage::taken, {}};
  };

  const std::shared_ptr<Shared> shared_;
  Worker worker_;
};

ServiceDoor::ServiceDoor(const Clock& clock, Check check) : clock_(clock), check_(std::move(check)) {}
ServiceDoor::~ServiceDoor() = default;

void ServiceDoor::found(const std::vector<PortHolder>& services) {
  services_.clear();
  for (const PortHolder& service : services) services_.try_emplace(service.process.pid, service);
}

std::vector<Process> ServiceDoor::processes() const {
  std::vector<Process> all;
  for (const auto& [pid, service] : services_) all.push_back(service.process);
  return all;
}

Result<Done> ServiceDoor::ask(int pid, const Order& order, Nanoseconds) {
  const auto service = services_.find(pid);
  if (service == services_.end()) return Error("it no longer listens on its port");
  if (calls_.contains(pid)) return Error("another request for it is under way");
  if (calls_.size() >= kMostCalls) return Error("too many requests are under way");
  if (order.extent.steps) {
    return Error("the profiler service of TensorFlow and JAX counts no steps; ask for seconds");
  }
  const tcp::Listener& listener = service->second.listener;
  ServiceOrder asked = order_of(order, pid);
  asked.port = listener.port;
  asked.is_ip6 = listener.is_ip6();
  asked.is_host_traced = service->second.has_safe_host_trace;
  const auto check = [check = check_, listener]() -> Result<Done> {
    return check ? check(listener) : Done{};
  };
  calls_[pid] = std::make_unique<Call>(clock_, std::move(asked), check);
  calls_[pid]->start();
  return Done{};
}

Progress ServiceDoor::progress(int pid) const {
  const auto call = calls_.find(pid);
  return call == calls_.end() ? Progress() : call->second->progress();
}

void ServiceDoor::release(int pid) { calls_.erase(pid); }

std::string ServiceDoor::file_of(const Order& order, int pid, int) const {
  return path_of(order_of(order, pid));
}

}  // namespace gpumeter::profiles
