#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/labels.hpp"
#include "collectors/api/self_catalog.hpp"
#include "collectors/jobs/benchmarks/results.hpp"
#include "collectors/jobs/wire/vocabulary.hpp"
#include "daemon/cli/docs.hpp"
#include "daemon/parts/host.hpp"
#include "programs/nccl/settings.hpp"
#include "programs/profiler/settings.hpp"
#include "programs/servers/settings.hpp"

namespace gpumeter {
namespace {

using catalog::covered;
using catalog::LabelMeaning;

struct Use {
  std::string_view collector;
  const RowDoc* row;
  bool integrated;
};
struct Documented {
  const MetricDescriptor* descriptor;
  std::vector<Use> uses;
};
using Catalogue = std::map<std::string_view, Documented>;

/// Of every device, in addition to its collector's rows.
constexpr const MetricDescriptor* kOfDevices[] = {&catalog::info,
                                                  &catalog::up,
                                                  &catalog::observed_seconds,
                                                  &catalog::meter_source_info,
                                                  &catalog::partition_info,
                                                  &catalog::fabric_info,
                                                  &catalog::platform_info,
                                                  &catalog::inventory_info,
                                                  &catalog::operational_events};

void add(Catalogue& families, const MetricDescriptor& descriptor, const Use* use) {
  Documented& family = families[descriptor.name];
  family.descriptor = &descriptor;
  if (use != nullptr) family.uses.push_back(*use);
}

void add_rows(Catalogue& families, const CollectorEntry& collector) {
  for (const RowDoc& row : collector.metrics()) {
    const Use use{collector.name, &row, false};
    add(families, *row.family, &use);
    const Use derived{collector.name, &row, true};
    for (const MetricDescriptor* counterpart : {row.counter, row.max, row.min}) {
      if (counterpart != nullptr) add(families, *counterpart, &derived);
    }
  }
}

Catalogue all_families(std::span<const CollectorEntry> collectors) {
  Catalogue families;
  const auto add_all = [&families](std::span<const MetricDescriptor* const> descriptors) {
    for (const MetricDescriptor* const descriptor : descriptors) add(families, *descriptor, nullptr);
  };
  add_all(kOfDevices);
  add_all(self_catalog::all());
  for (const PartEntry* const part : builtin_parts()) add_all(part->families);
  add_all(jobs::kRunFamilies);
  add_all(jobs::benchmarks::kFamilies);
  add_all(nccl::kFamilies);
  add_all(profiles::kFamilies);
  add_all(servers::kFamilies);
  for (const jobs::Word& word : jobs::vocabulary()) {
    add(families, *word.family, nullptr);
    if (word.times != nullptr) add(families, *word.times, nullptr);
  }
  for (const CollectorEntry& collector : collectors) add_rows(families, collector);
  return families;
}

/// A section of the page. A family is in the section with the longest pattern that covers it.
struct Subject {
  std::string_view title;
  std::string_view families;
};

// clang-format off
constexpr Subject kSubjects[] = {
    {"Devices", "gpu_*"},
    {"Utilisation", "gpu_utilization_* gpu_busy_* gpu_engine_* gpu_gt_* gpu_memory_controller_* gpu_compute_* gpu_pipe_* gpu_tensor_* gpu_cycles_* gpu_active_cycles_*"},
    {"Memory", "gpu_memory_* gpu_visible_*"},
    {"Power and energy", "gpu_power_* gpu_energy_* gpu_rail_* gpu_voltage_*"},
    {"Temperature and cooling", "gpu_temperature_* gpu_fan_*"},
    {"Clocks and peak rates", "gpu_clock_* gpu_performance_* gpu_peak_*"},
    {"Throttling", "gpu_throttle* gpu_clock_below_*"},
    {"PCI Express and links", "gpu_pcie_* gpu_interconnect_* gpu_link_* gpu_fabric_* gpu_topology_*"},
    {"Errors and events", "gpu_memory_errors* gpu_memory_lifetime_* gpu_memory_unrepairable* gpu_hardware_* gpu_retired_* gpu_remapped_* gpu_row_* gpu_sram_* gpu_bank_* gpu_repair_* gpu_xid_* gpu_events* gpu_operational_* gpu_recovery_*"},
    {"Health", "gpu_health* gpu_advisory*"},
    {"Partitions", "gpu_partition_*"},
    {"Who uses a GPU", "gpu_workload_* gpu_alloc* gpu_process_*"},
    {"The machine", "gpu_host_* machine_*"},
    {"Benchmarks", "gpu_benchmark_*"},
    {"Jobs", "ml_*"},
    {"Profiles and NCCL", "ml_profile* ml_nccl_* ml_flight_*"},
    {"Model servers", "ml_server_*"},
    {"The daemon", "gpumeter_* process_*"},
};
// clang-format on

const Subject& subject_of(std::string_view family) {
  return *std::ranges::max_element(kSubjects, {},
                                   [&](const Subject& subject) { return covered(subject.families, family); });
}

using Words = std::vector<std::string_view>;

Words words_of(std::string_view text) {
  Words words;
  while (!text.empty()) words.push_back(take_until(text, ' '));
  return words;
}

std::string code(std::string_view text) { return "`" + std::string(text) + "`"; }

// A bar would end the cell of the table.
std::string cell(std::string_view source) {
  std::string text;
  for (const char c : source) text.append(c == '|' ? "\\|" : std::string(1, c));
  return text;
}

template <class List, class Text>
std::string joined(const List& list, std::string_view separator, Text text_of) {
  std::string text;
  for (const auto& each : list) text.append(text.empty() ? "" : separator).append(text_of(each));
  return text;
}

/// The labels of the family: those of its rows in their order, then those that only LabelMeaning names.
Words labels_of(const Documented& family) {
  Words labels;
  const auto add_label = [&](std::string_view label) {
    if (!label.empty() && std::ranges::find(labels, label) == labels.end()) labels.push_back(label);
  };
  for (const Use& use : family.uses) {
    for (const LabelSet::Pair& pair : use.row->labels.pairs) add_label(pair.name);
  }
  for (const LabelMeaning& meaning : catalog::kLabels) {
    const bool is_named =
        meaning.families != catalog::kOfRows && covered(meaning.families, family.descriptor->name) > 0;
    for (const std::string_view label : is_named ? words_of(meaning.labels) : Words()) add_label(label);
  }
  return labels;
}

/// Returns the family's part of the standard page, if that is not all of it.
std::string standard_text(const MetricDescriptor& metric) {
  using Level = Detail::Level;
  const Detail& detail = metric.detail;
  if (detail.level == Level::standard) return {};
  const bool is_counter = metric.type == MetricType::counter;
  const std::string others = is_counter ? "series from their first event on" : "series while they are not 0";
  std::string part = detail.level == Level::nonzero ? others : "";
  if (!detail.label.empty()) {
    part.append(part.empty() ? "" : " and ").append("`").append(detail.label).append("=");
    part.append(quoted(detail.value)).append("`");
  }
  return " Standard page: " + (part.empty() ? "none" : part) + ".";
}

std::string row_of(const Documented& family) {
  const MetricDescriptor& metric = *family.descriptor;
  const std::string name(metric.name);
  std::string text =
      "| <a id=\"" + name + "\"></a>" + code(name) + " | " + std::string(to_string(metric.type));
  if (!metric.unit.empty()) text.append(", ").append(metric.unit);
  text.append(" | ").append(joined(labels_of(family), ", ", code));
  return text + " | " + std::string(metric.help) + standard_text(metric) + " |\n";
}

/// "`reset`: a reset began; `reset_failed`: it failed", or the names and what they have in common.
std::string meaning_text(const LabelMeaning& meaning) {
  const Words names = words_of(meaning.values.empty() ? meaning.labels : meaning.values);
  std::vector<std::string_view> parts;
  for (std::string_view rest = meaning.meaning; !rest.empty();) {
    parts.push_back(trimmed(take_until(rest, ';')));
  }
  if (names.size() < 2 || parts.size() != names.size()) {
    const std::string values = meaning.values.empty() ? "" : joined(names, ", ", code) + ": ";
    return values + std::string(meaning.meaning);
  }
  std::size_t i = 0;
  return joined(names, "; ",
                [&](std::string_view name) { return code(name) + ": " + std::string(parts[i++]); });
}

std::string row_of(const LabelMeaning& meaning) {
  const bool is_of_rows = meaning.families == catalog::kOfRows;
  return "| " + joined(words_of(meaning.labels), ", ", code) + " | " +
         (is_of_rows ? "all that have it" : joined(words_of(meaning.families), ", ", code)) + " | " +
         meaning_text(meaning) + " |\n";
}

/// Whether the family has the label, and one of the values if there are rows that name them.
bool concerns(const LabelMeaning& meaning, const Documented& family) {
  if (covered(meaning.families, family.descriptor->name) == 0) return false;
  return meaning.families != catalog::kOfRows || std::ranges::any_of(family.uses, [&](const Use& use) {
           return std::ranges::any_of(use.row->labels.pairs, [&](const LabelSet::Pair& pair) {
             return pair.name == meaning.labels &&
                    (meaning.values.empty() || covered(meaning.values, pair.value) > 0);
           });
         });
}

/// The rows of one tier of a collector that have the same sources: labels with all their values.
struct Sources {
  std::vector<std::pair<std::string_view, Words>> labels;
  std::vector<std::string> sources;

  /// Takes the other's values if the two differ in those of one label alone.
  bool take(const Sources& other) {
    if (sources != other.sources || labels.size() != other.labels.size()) return false;
    std::size_t differing = labels.size();
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i].first != other.labels[i].first) return false;
      if (labels[i].second == other.labels[i].second) continue;
      if (differing != labels.size()) return false;
      differing = i;
    }
    if (differing == labels.size()) return true;
    for (const std::string_view value : other.labels[differing].second)
      labels[differing].second.push_back(value);
    return true;
  }
};

/// Returns "0" to "35" for consecutive numbers, otherwise the list of values.
std::string values_text(const Words& values) {
  bool is_run = values.size() > 3;
  for (std::size_t i = 0; i < values.size(); ++i) is_run = is_run && values[i] == std::to_string(i);
  return is_run ? quoted(values.front()) + " to " + quoted(values.back()) : joined(values, ", ", quoted);
}

std::string text_of(const Sources& of) {
  const std::string labels = joined(of.labels, ", ", [](const auto& label) {
    return std::string(label.first) + "=" + values_text(label.second);
  });
  return (labels.empty() ? "" : code(labels) + " ") +
         joined(of.sources, ", ", [](const auto& source) { return source; });
}

std::vector<Sources> sources_of(std::span<const Use> uses) {
  std::vector<Sources> all;
  for (const Use& use : uses) {
    Sources one;
    for (const LabelSet::Pair& pair : use.row->labels.pairs) {
      if (!pair.name.empty()) one.labels.push_back({pair.name, {pair.value}});
    }
    const std::string source = (use.integrated ? "from " : "") + code(cell(use.row->source));
    const auto known = std::ranges::find(all, one.labels, &Sources::labels);
    Sources& entry = known == all.end() ? all.emplace_back(std::move(one)) : *known;
    if (std::ranges::find(entry.sources, source) == entry.sources.end()) entry.sources.push_back(source);
  }
  std::vector<Sources> merged;
  for (const Sources& each : all) {
    const bool is_taken = std::ranges::any_of(merged, [&](Sources& other) { return other.take(each); });
    if (!is_taken) merged.push_back(each);
  }
  return merged;
}

/// A row for each collector and tier that reads the family.
std::string source_rows(const Documented& family) {
  const auto key = [](const Use& use) { return std::pair(use.collector, use.row->tier); };
  std::vector<Use> left = family.uses;
  std::string text;
  while (!left.empty()) {
    const auto first = key(left.front());
    const auto rest = std::ranges::stable_partition(left, [&](const Use& use) { return key(use) == first; });
    const std::span<const Use> uses(left.begin(), rest.begin());
    text += "| " + code(family.descriptor->name) + " | " + std::string(first.first) + " | " +
            std::string(to_string(first.second)) + " | " + joined(sources_of(uses), "; ", text_of) + " |\n";
    left.erase(left.begin(), rest.begin());
  }
  return text;
}

constexpr std::string_view kHead = R"(# Metrics

Generated by `./dev docs` from the tables in the code; do not edit. Series of a device carry the labels
`gpu` (index) and `uuid`, and by default `vendor` and `model`, in addition to those below.
gpumeter omits values that a card does not report; a missing series never means 0.
A family's row names its series on the standard page, if they are not all: the metrics page by default
(`metrics.detail: standard`). See "The price of a series" in [scrape.md](scrape.md).

Each section has the families, the meaning of their labels, and for each collector where a value comes from: a file, a
call or a field of the driver, in the order of preference; "from" if gpumeter integrates it.
The tiers are read every 1 s (fast), 10 s (normal) and 60 s (slow) by default; once is the first pass.

| subject | families |
|---|---|
)";

std::string anchor_of(std::string_view title) {
  std::string anchor;
  for (const char c : title)
    anchor += c == ' ' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return anchor;
}

/// `head` and the rows, if there are any.
std::string table(std::string_view head, const std::string& rows) {
  return rows.empty() ? "" : std::string(head) + rows;
}

/// `explained`: the meanings that an earlier section has.
std::string section(const Subject& subject, const std::vector<const Documented*>& families,
                    std::set<const LabelMeaning*>& explained) {
  std::string rows, labels, sources;
  for (const Documented* family : families) {
    rows += row_of(*family);
    sources += source_rows(*family);
  }
  for (const LabelMeaning& meaning : catalog::kLabels) {
    const bool is_here =
        !meaning.meaning.empty() &&
        std::ranges::any_of(families, [&](const Documented* family) { return concerns(meaning, *family); });
    if (is_here && explained.insert(&meaning).second) labels += row_of(meaning);
  }
  return "\n## " + std::string(subject.title) + "\n" +
         table("\n| family | type | labels | meaning |\n|---|---|---|---|\n", rows) +
         table("\n| label | of | meaning |\n|---|---|---|\n", labels) +
         table("\n| family | collector | tier | source |\n|---|---|---|---|\n", sources);
}

}  // namespace

std::string metrics_markdown(std::span<const CollectorEntry> collectors) {
  const Catalogue families = all_families(collectors);
  std::map<std::string_view, std::vector<const Documented*>> by_subject;
  for (const auto& [name, family] : families) by_subject[subject_of(name).title].push_back(&family);
  std::string text(kHead);
  std::string sections;
  std::set<const LabelMeaning*> explained;
  for (const Subject& subject : kSubjects) {
    const std::vector<const Documented*>& own = by_subject[subject.title];
    if (own.empty()) continue;
    const auto link = [](const Documented* family) {
      const std::string name(family->descriptor->name);
      return "[" + name + "](#" + name + ")";
    };
    text += "| [" + std::string(subject.title) + "](#" + anchor_of(subject.title) + ") | " +
            joined(own, ", ", link) + " |\n";
    sections += section(subject, own, explained);
  }
  return text + sections;
}

std::string metrics_text(std::span<const CollectorEntry> collectors) {
  std::string text;
  for (const auto& [name, family] : all_families(collectors)) {
    const MetricDescriptor& metric = *family.descriptor;
    text.append(name).append("\t").append(to_string(metric.type)).append("\t").append(metric.unit);
    text.append("\t").append(metric.help).append("\n");
  }
  return text;
}

std::vector<const MetricDescriptor*> catalogue_families(std::span<const CollectorEntry> collectors) {
  std::vector<const MetricDescriptor*> families;
  for (const auto& [name, family] : all_families(collectors)) families.push_back(family.descriptor);
  return families;
}

}  // namespace gpumeter
