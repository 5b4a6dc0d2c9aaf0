#include "collectors/attribution/allocation/part.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/drm_use.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/attribution/allocation/meter.hpp"
#include "collectors/attribution/cgroup/new_groups.hpp"
#include "collectors/attribution/names/manual_file.hpp"
#include "collectors/attribution/names/slurm.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::allocation {
namespace {

using options::check_optional_path;
using options::check_percent;
using options::checked;
using options::Option;
using options::option;
using options::Reload;

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&Settings::idle_percent>("idle_percent", Reload::applies, "Busy share in percent below which an allocated GPU counts as idle (`gpu_allocated_idle_seconds_total`).", checked<check_percent>),
    option<&Settings::slurm>("slurm", Reload::applies, "Folder to which Slurm's prolog writes the jobs of this machine (docs/slurm.md); `\"\"`: none.", checked<check_optional_path>),
    option<&Settings::slurm_gpus>("slurm_gpus", Reload::applies, "File with slurmd's list of GPUs: the output of `slurmd -G`, or gres.conf. Required if slurmd does not know the GPUs' uuids and its order differs from that of the PCI addresses. Empty: none.", checked<check_optional_path>),
    option<&Settings::manual>("manual", Reload::applies, "Folder of the allocations that `gpumeter allocate` made; `\"\"`: none.", checked<check_optional_path>),
    option<&Settings::held>("held", Reload::applies, "Folder in which `gpumeter-held` records the GPUs that the control groups of Slurm jobs permit (docs/slurm.md); `\"\"`: none.", checked<check_optional_path>),
};
// clang-format on

// A job of 4 s must not be missed, and the folders are in memory.
constexpr Nanoseconds kEvery = std::chrono::seconds(1);

std::chrono::seconds since_1970() {
  return std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

Meter::Settings meter_settings(const Settings& own, Nanoseconds lists_every) {
  constexpr double kPercent = 0.01;
  constexpr int kLists = 3;
  Meter::Settings meter;
  meter.idle_below = own.idle_percent * kPercent;
  meter.of_workload = std::max(meter.of_workload, kLists * lists_every);
  return meter;
}

class Allocations final : public Part, public Keeps {
 public:
  explicit Allocations(const PartContext& context)
      : settings_(context.settings_of<Settings>()),
        workloads_(*context.machine.workloads),
        machine_(context.machine),
        paths_(context.paths),
        store_(context.store),
        log_(context.log),
        groups_(paths_.cgroups()),
        slurm_({settings_.slurm, settings_.slurm_gpus, paths_.sysfs}),
        meter_(meter_settings(settings_, workloads_.lists_every)),
        series_(store_.attach({}, context.name)) {
    // An earlier part with other keys may have published them.
    if (settings_.slurm.empty()) workloads_.names->publish("slurm", {});
    if (settings_.manual.empty()) workloads_.names->publish("manual", {});
    if (settings_.held.empty()) workloads_.names->publish("cgroup", {});
  }

  Nanoseconds turn(Nanoseconds now) override {
    look_for_groups(now);
    if (!settings_.slurm.empty()) take("slurm", slurm_.read(since_1970()));
    if (slurm_.assumes_order() && !std::exchange(is_order_logged_, true)) {
      log_.info("GPUs of Slurm jobs are counted in the order of PCI addresses",
                {{"list", settings_.slurm_gpus.empty() ? "not configured" : settings_.slurm_gpus}});
    }
    if (!settings_.manual.empty()) take("manual", manual::read_allocated(settings_.manual));
    if (!settings_.held.empty()) take("cgroup", manual::read_held(settings_.held, paths_.sysfs));
    publish(now);
    return kEvery;
  }

  std::string save() const override { return meter_.save(); }
  Result<Done> resume(std::string_view section, bool is_of_this_boot) override {
    return is_of_this_boot ? meter_.load(section) : Done{};
  }

 private:
  // The clients of a new group are scanned at the times of workloads::ListRequest::kAfter.
  void look_for_groups(Nanoseconds now) {
    if (groups_.look()) workloads_.lists->note(now);
    if (!workloads_.lists->is_due(now, begun_at_)) return;
    begun_at_ = now;
    if (machine_.drm_users) machine_.drm_users->scan_soon();
  }

  // One line of the log for each change.
  void take(const std::string& source, Result<workloads::Names> names) {
    const std::string error = names ? "" : names.error().message();
    if (std::exchange(errors_[source], error) != error) {
      error.empty() ? log_.info("allocations are read again", {{"source", source}})
                    : log_.warn("allocations are not read", {{"source", source}, {"error", error}});
    }
    workloads_.names->publish(source, names ? *std::move(names) : workloads::Names());
  }

  void publish(Nanoseconds now) {
    const std::vector<workloads::Allocation> given = workloads_.names->allocations();
    const auto devices = machine_.known_devices.get();
    if ((given.empty() || devices->empty()) && !has_series_) return;
    meter_.update(given, *devices, read(store_), now);
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

  const Settings settings_;
  const WorkloadSettings& workloads_;
  const Machine& machine_;
  const Paths& paths_;
  Store& store_;
  Log& log_;
  cgroup::NewGroups groups_;
  Nanoseconds begun_at_{};  ///< the last extra scan
  slurm::Folder slurm_;
  Meter meter_;
  SeriesList series_;
  std::map<std::string, std::string> errors_;       ///< the last one of each source; empty: none
  std::set<workloads::DeviceSelector> unresolved_;  ///< of the last turn
  bool is_order_logged_ = false;
  bool has_series_ = false;
};

std::shared_ptr<Part> open(const PartContext& context) {
  if (context.machine.workloads == nullptr) return nullptr;
  return std::make_shared<Allocations>(context);
}

constexpr const MetricDescriptor* kFamilies[] = {&catalog::allocation_info, &catalog::allocation_start,
                                                 &catalog::allocated_idle_seconds};

}  // namespace

constinit const options::Section kSection = options::section("allocations", kOptions);

const PartEntry kPart = {.name = "allocations",
                         .options = &kSection,
                         .families = kFamilies,
                         .section = "allocations",
                         .open = open};

}  // namespace gpumeter::allocation
