#include "collectors/attribution/workload_settings.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/machine.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {
namespace {

using options::checked;
using options::Complaint;
using options::Option;
using options::option;
using options::printable;
using options::Reload;

constexpr std::string_view kEnvironmentLabels = "env_";

std::string environment_label(std::string_view variable) {
  std::string label(kEnvironmentLabels);
  std::ranges::transform(variable, std::back_inserter(label), lower);
  return label;
}

/// True if a word of the name ends as the names of secrets do: WANDB_API_KEY, HF_TOKEN, PGPASSWORD; not
/// TOKENIZERS_PARALLELISM.
bool is_secret(std::string_view label) {
  constexpr std::array<std::string_view, 6> kEnds = {"token",  "secret",      "password",
                                                     "passwd", "credentials", "key"};
  while (!label.empty()) {
    const std::string_view word = take_until(label, '_');
    if (std::ranges::any_of(kEnds, [&](std::string_view end) { return word.ends_with(end); })) return true;
  }
  return false;
}

/// Requires names of variables (POSIX.1, 8.1) that hold no secret and remain different as labels.
Complaint check_environment(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 16;
  constexpr std::size_t kLongest = 64;
  if (names.size() > kMost) return "must have at most 16 variables";
  std::map<std::string, std::string> exported;
  for (const std::string& name : names) {
    const auto is_allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
    const bool is_name = !name.empty() && name.size() <= kLongest && std::isdigit(name[0]) == 0 &&
                         std::ranges::all_of(name, is_allowed);
    if (!is_name) {
      return "must have names of environment variables, such as WANDB_NAME, not \"" + printable(name) + "\"";
    }
    const auto [other, is_new] = exported.emplace(environment_label(name), name);
    if (is_secret(other->first)) {
      return "must not have \"" + name +
             "\": by its name the value is a secret, and everyone can read the page";
    }
    if (!is_new) {
      return "must not have both \"" + other->second + "\" and \"" + name + "\": both are exported as " +
             other->first;
    }
  }
  return std::nullopt;
}

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&WorkloadOptions::enabled>("enabled", Reload::restart, "Export `gpu_workload_*`: who uses each device whose driver lists its processes."),
    option<&WorkloadOptions::processes>("processes", Reload::restart, "Export `gpu_process_*`, series for each process. They come and go with the processes."),
    option<&WorkloadOptions::environment>("environment", Reload::restart, "Environment variables of a workload's first process on a GPU that are labels of `gpu_workload_info`, such as `[WANDB_NAME, PROJECT]`: `env_wandb_name`, `env_project` (docs/workloads.md#environment-variables). Processes of other users require CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH.", checked<check_environment>),
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

/// The first value of each variable, as getenv(3) returns it.
std::vector<Label> variables_in(std::string_view environment, const std::vector<std::string>& names) {
  std::vector<Label> labels;
  for (const std::string& name : names) {
    for (std::string_view rest = environment; !rest.empty();) {
      std::string_view value = take_until(rest, '\0');
      if (take_until(value, '=') != name) continue;
      labels.push_back({environment_label(name), cgroup::label_text(value)});
      break;
    }
  }
  return labels;
}

class FirstEnvironments final : public Part {
 public:
  explicit FirstEnvironments(const PartContext& context)
      : settings_(*context.machine.workloads), log_(context.log) {}

  Nanoseconds turn(Nanoseconds now) override;

 private:
  void read(const ProcessUse& process);

  const WorkloadSettings& settings_;
  Log& log_;
  std::set<ProcessId> seen_;  ///< present at the last turn
  bool has_warned_ = false;
};

// Ranks of one job come in the same list: the one that began first counts.
Nanoseconds FirstEnvironments::turn(Nanoseconds /*now*/) {
  std::set<ProcessId> present;
  std::vector<const ProcessUse*> unseen;
  const auto uses = settings_.book->uses();
  for (const auto& use : uses) {
    for (const ProcessUse& process : use->processes) {
      const bool is_unseen =
          process.present && present.insert(process.id).second && !seen_.contains(process.id);
      if (is_unseen) unseen.push_back(&process);
    }
  }
  std::ranges::sort(unseen, {}, [](const ProcessUse* process) {
    return std::tuple(process->id.start_ticks, process->id.pid);
  });
  for (const ProcessUse* process : unseen) read(*process);
  seen_ = std::move(present);
  return kEvery;
}

// The number may be another process's by now: its start time, read last, would differ. An ended process has
// no environment, and another of the workload is read in its place.
void FirstEnvironments::read(const ProcessUse& process) {
  constexpr std::size_t kMost = 256U << 10U;  // what follows is not looked at
  const cgroup::Attribution owner = cgroup::attribution_of(cgroup::read_path(process.group));
  const WorkloadId id{owner.kind, owner.workload};
  if (!settings_.book->lacks_environment(id)) return;
  const auto [pid, start] = process.id;
  SmallFile file = read_small_file(proc::path(settings_.procfs, pid, "environ"), kMost);
  const bool has_ended = file.error == ENOENT || file.error == ESRCH;
  if (file.error != 0 && !has_ended && !std::exchange(has_warned_, true)) {
    log_.warn("the environment of a process cannot be read; workloads like its own have no labels env_*",
              {{"pid", std::to_string(pid)}, {"error", std::generic_category().message(file.error)}});
  }
  if (!file.is_whole) file.text.resize(file.text.rfind('\0') + 1);
  if (file.error != 0 || file.text.empty()) return;
  const SmallFile stat = read_small_file(proc::path(settings_.procfs, pid, "stat"), 4096);
  if (proc::start_ticks(stat.text) != start) return;
  settings_.book->note_environment(id, variables_in(file.text, settings_.environment));
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

/// An earlier process may have seen them, and then asked for other variables.
std::vector<Label> WorkloadInfo::names_of(const WorkloadBook::Workload& workload) {
  const auto [known, is_new] = names_.try_emplace(workload.id);
  if (is_new && settings_.costs) {
    known->second = settings_.costs->earlier_labels(workload.id);
    std::erase_if(known->second, [this](const Label& label) {
      return label.name.starts_with(kEnvironmentLabels) &&
             std::ranges::find(settings_.environment, label.name, environment_label) ==
                 settings_.environment.end();
    });
  }
  std::map<std::string, std::string> names;
  if (settings_.names) {
    for (const Label& label : settings_.names->labels_of(workload.facts))
      names.emplace(label.name, label.value);
  }
  for (const Label& label : known->second) names.emplace(label.name, label.value);
  for (const Label& label : workload.facts.environment.value_or(std::vector<Label>())) {
    names.emplace(label.name, label.value);
  }
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

std::shared_ptr<Part> open_environment(const PartContext& context) {
  const WorkloadSettings* const workloads = context.machine.workloads.get();
  if (workloads == nullptr || workloads->environment.empty()) return nullptr;
  return std::make_shared<FirstEnvironments>(context);
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

const PartEntry kEnvironment = {.name = "environment", .is_on_single_page = true, .open = open_environment};

const PartEntry kInfo = {.name = "workloads", .families = kFamilies, .is_on_single_page = true, .open = open};

}  // namespace gpumeter::workloads
