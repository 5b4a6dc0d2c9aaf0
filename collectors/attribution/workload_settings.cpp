#include "collectors/attribution/workload_settings.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/api/machine.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {
namespace {

using options::Option;
using options::option;
using options::Reload;

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&WorkloadOptions::enabled>("enabled", Reload::restart, "Export `gpu_workload_*`: who uses each device whose driver lists its processes."),
    option<&WorkloadOptions::processes>("processes", Reload::restart, "Export `gpu_process_*`, series for each process. They come and go with the processes."),
};
// clang-format on

}  // namespace

constinit const options::Section kWorkloadSection = options::section("workloads", kOptions);

}  // namespace gpumeter

namespace gpumeter::workloads {
namespace {

constexpr Nanoseconds kEvery = std::chrono::seconds(1);
// The lookup of a user's name may take long.
constexpr auto kAnyway = std::chrono::minutes(1);

// An unattributed workload is measured: a driver that lists no process reports that no process uses the
// device.
std::string source_of(const WorkloadBook::Workload& workload) {
  const bool is_told = workload.facts.is_measured || workload.id == unattributed();
  return is_told ? "process" : "equal";
}

// A pod's uid is a user of its image: the host's user with this number has nothing to do with it.
std::string user_of(const WorkloadBook::Workload& workload, std::uint32_t uid,
                    const WorkloadSettings& settings) {
  return workload.id.kind == cgroup::Kind::pod ? std::to_string(uid) : settings.user_name(uid);
}

std::vector<Label> labels_of(const WorkloadBook::Workload& workload, const WorkloadSettings& settings) {
  const WorkloadFacts& facts = workload.facts;
  std::vector<Label> labels = {{"kind", std::string(to_string(workload.id.kind))},
                               {"workload", workload.id.name}};
  for (const WorkloadFact& fact : kWorkloadFacts) {
    const std::optional<std::string>& text = (facts.*fact.common).value();
    if (fact.label != nullptr && text) labels.push_back({fact.label, *text});
  }
  if (facts.uid.value()) labels.push_back({"user", user_of(workload, *facts.uid.value(), settings)});
  labels.push_back({"source", source_of(workload)});
  return labels;
}

using Names = std::vector<Label>;

/// Workloads that were given a GPU and have no process on one, with what their sources say.
std::map<WorkloadId, Names> allocated_only(const NameBook& names, const std::set<WorkloadId>& present) {
  std::map<WorkloadId, Names> found;
  for (const Allocation& allocation : names.allocations()) {
    if (present.contains(allocation.workload) || found.size() >= WorkloadBook::kMostWorkloads) {
      continue;
    }
    Names& labels = found[allocation.workload];
    labels.insert(labels.end(), allocation.names.begin(), allocation.names.end());
  }
  return found;
}

/// The labels beyond those that a cost has anyway.
std::vector<Label> facts_in(std::vector<Label> labels) {
  std::erase_if(labels, [](const Label& label) {
    return label.name == "kind" || label.name == "workload" || label.name == "source";
  });
  return labels;
}

class WorkloadInfo final : public Part {
 public:
  explicit WorkloadInfo(const PartContext& context)
      : machine_(context.machine),
        settings_(*context.machine.workloads),
        series_(context.store.attach({}, context.name)) {}

  // Commits the workloads if they have changed, and once a minute; otherwise only publishes who uses the
  // devices.
  Nanoseconds turn(Nanoseconds now) override;

 private:
  std::vector<Label> names_of(const WorkloadBook::Workload& workload);
  void add_allocated(const std::set<WorkloadId>& present);

  Machine& machine_;
  const WorkloadSettings& settings_;
  SeriesList series_;
  std::map<WorkloadId, std::vector<Label>> names_;  ///< as last seen, of the workloads in the book
  Nanoseconds published_at_{};
  std::optional<std::uint64_t> published_;  ///< the book's generation
};

/// An earlier process may have seen them.
std::vector<Label> WorkloadInfo::names_of(const WorkloadBook::Workload& workload) {
  const auto [known, is_new] = names_.try_emplace(workload.id);
  if (is_new && settings_.costs) known->second = settings_.costs->earlier_labels(workload.id);
  std::map<std::string, std::string> names;
  if (settings_.names) {
    for (const Label& label : settings_.names->labels_of(workload.facts))
      names.emplace(label.name, label.value);
  }
  for (const Label& label : known->second) names.emplace(label.name, label.value);
  known->second.clear();
  for (const auto& [name, value] : names) known->second.push_back({name, value});
  return known->second;
}

void WorkloadInfo::add_allocated(const std::set<WorkloadId>& present) {
  if (settings_.names == nullptr) return;
  for (const auto& [id, names] : allocated_only(*settings_.names, present)) {
    const Labels labels = {
        {"kind", std::string(to_string(id.kind))}, {"workload", id.name}, {"source", "allocation"}};
    series_.add(catalog::workload_info, labels.with(names), 1);
  }
}

Nanoseconds WorkloadInfo::turn(Nanoseconds now) {
  machine_.uses.publish(settings_.book->uses());
  // Both numbers only grow, so their sum changes with either.
  const std::uint64_t generation =
      settings_.book->generation() + (settings_.names ? settings_.names->generation() : 0);
  if (published_ == generation && now < published_at_ + kAnyway) return kEvery;
  std::set<WorkloadId> present;
  CostLedger::Names names;
  for (const auto& workload : settings_.book->workloads()) {
    present.insert(workload.id);
    std::vector<Label> labels = labels_of(workload, settings_);
    std::ranges::move(names_of(workload), std::back_inserter(labels));
    series_.add(catalog::workload_info, Labels(labels), 1);
    if (settings_.costs) names.emplace_back(workload.id, facts_in(std::move(labels)));
  }
  std::erase_if(names_, [&](const auto& entry) { return !present.contains(entry.first); });
  if (settings_.costs) settings_.costs->describe(std::move(names));
  add_allocated(present);
  series_.commit(now);
  published_ = generation;
  published_at_ = now;
  return kEvery;
}

std::shared_ptr<Part> open(const PartContext& context) {
  if (context.machine.workloads == nullptr) return nullptr;
  return std::make_shared<WorkloadInfo>(context);
}

/// Of devices whose drivers list their processes; each device's lane exports all but gpu_workload_info.
constexpr const MetricDescriptor* kFamilies[] = {
    &catalog::workload_memory_used, &catalog::workload_busy_seconds,
    &catalog::workload_energy,      &catalog::workload_memory_peak,
    &catalog::workload_share,       &catalog::workload_info,
    &catalog::workload_idle_energy, &catalog::idle_power,
    &catalog::process_memory_used,  &catalog::process_busy_seconds};

}  // namespace

const PartEntry kInfo = {.name = "workloads", .families = kFamilies, .is_on_single_page = true, .open = open};

}  // namespace gpumeter::workloads
