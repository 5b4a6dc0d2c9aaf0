#include "daemon/names/allocations.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "collectors/attribution/allocation/readings.hpp"
#include "collectors/attribution/cgroup/new_groups.hpp"
#include "collectors/attribution/names/held_files.hpp"
#include "collectors/attribution/names/manual_file.hpp"

namespace gpumeter {
namespace {

// A job of 4 s must not be missed, and the folders are in memory.
constexpr auto kEvery = std::chrono::seconds(1);

std::chrono::seconds since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace

/// The thread's state.
class Allocations::Turn {
 public:
  Turn(allocation::Settings settings, Shared shared, Store& store, Log& log, const Clock& clock)
      : settings_(std::move(settings)),
        shared_(std::move(shared)),
        store_(store),
        log_(log),
        clock_(clock),
        groups_(shared_.paths.cgroups()),
        slurm_({settings_.slurm, settings_.slurm_gpus, shared_.paths.sysfs}),
        meter_(meter_settings()),
        series_(store.attach()) {}

  Nanoseconds run() {
    look_for_groups();
    if (!settings_.slurm.empty()) read_slurm();
    if (!settings_.manual.empty()) read_manual();
    if (!settings_.held.empty()) read_held();
    publish();
    return kEvery;
  }

 private:
  allocation::Meter::Settings meter_settings() const {
    constexpr double kPercent = 0.01;
    constexpr int kLists = 3;
    allocation::Meter::Settings meter;
    meter.idle_below = settings_.idle_percent * kPercent;
    meter.of_workload = std::max(meter.of_workload, kLists * shared_.lists_every);
    return meter;
  }

  void look_for_groups() {
    const Nanoseconds now = clock_.monotonic();
    if (groups_.look()) shared_.lists->note(now);
    if (!shared_.lists->is_due(now, begun_at_)) return;
    begun_at_ = now;
    shared_.begun();
  }

  void read_slurm() {
    Result<workloads::Names> names = slurm_.read(since_1970());
    note("slurm", names ? "" : names.error().message());
    if (slurm_.assumes_order() && !std::exchange(is_order_logged_, true)) {
      log_.info("GPUs of Slurm jobs are counted in the order of PCI addresses",
                {{"list", settings_.slurm_gpus.empty() ? "not configured" : settings_.slurm_gpus}});
    }
    shared_.names->publish("slurm", names ? *std::move(names) : workloads::Names());
  }

  void read_manual() {
    const Result<std::vector<manual::Grant>> grants = manual::read_grants(settings_.manual);
    note("manual", grants ? "" : grants.error().message());
    workloads::Names names;
    if (grants) {
      for (const manual::Grant& grant : *grants) {
        for (auto& each : manual::allocations_of(grant)) names.allocations.push_back(std::move(each));
      }
    }
    shared_.names->publish("manual", std::move(names));
  }

  void read_held() {
    Result<workloads::Names> names = held::read_held(settings_.held, shared_.paths.sysfs);
    note("cgroup", names ? "" : names.error().message());
    shared_.names->publish("cgroup", names ? *std::move(names) : workloads::Names());
  }

  // One line for each change.
  void note(const std::string& source, const std::string& error) {
    std::string& last = errors_[source];
    if (std::exchange(last, error) == error) return;
    if (error.empty()) return log_.info("allocations are read again", {{"source", source}});
    log_.warn("allocations are not read", {{"source", source}, {"error", error}});
  }

  void publish() {
    const std::vector<workloads::Allocation> given = shared_.names->allocations();
    const std::vector<DeviceIdentity> devices = shared_.devices();
    if ((given.empty() || devices.empty()) && !has_series_) return;
    const Nanoseconds now = clock_.monotonic();
    meter_.update(given, devices, allocation::read(store_), now);
    meter_.write(series_);
    series_.commit(now);
    has_series_ = !meter_.is_empty();
    note_unresolved();
  }

  void note_unresolved() {
    std::set<workloads::DeviceSelector> unresolved;
    for (const workloads::Allocation& each : meter_.unresolved()) {
      unresolved.insert(each.device);
      if (unresolved_.contains(each.device)) continue;
      log_.info("a workload was given a GPU that is not known here",
                {{"source", std::string(to_string(each.source))},
                 {"workload", each.workload.name},
                 {"gpu", each.device.id}});
    }
    unresolved_ = std::move(unresolved);
  }

  const allocation::Settings settings_;
  const Shared shared_;
  Store& store_;
  Log& log_;
  const Clock& clock_;
  cgroup::NewGroups groups_;
  Nanoseconds begun_at_{};  // the last call of shared_.begun
  slurm::Folder slurm_;
  allocation::Meter meter_;
  SeriesList series_;
  std::map<std::string, std::string> errors_;       // the last one of each source; empty: none
  std::set<workloads::DeviceSelector> unresolved_;  // of the last turn
  bool is_order_logged_ = false;
  bool has_series_ = false;
};

Allocations::Allocations(allocation::Settings settings, Shared shared, Store& store, Log& log,
                         const Clock& clock)
    : turn_(std::make_shared<Turn>(std::move(settings), std::move(shared), store, log, clock)),
      worker_(clock) {}

Result<Done> Allocations::start() {
  return worker_.start("allocations", [turn = turn_] { return turn->run(); });
}

}  // namespace gpumeter
