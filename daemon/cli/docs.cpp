#include "daemon/cli/docs.hpp"

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/self_catalog.hpp"
#include "collectors/events/xids.hpp"
#include "collectors/jobs/benchmarks/results.hpp"
#include "collectors/jobs/wire/vocabulary.hpp"
#include "daemon/parts/host.hpp"
#include "exporter/health/conditions.hpp"
#include "programs/nccl/settings.hpp"
#include "programs/profiler/settings.hpp"
#include "programs/servers/settings.hpp"

namespace gpumeter {
namespace {

struct Use {
  std::string_view collector;
  const RowDoc* row;
  bool integrated;
};
struct Family {
  const MetricDescriptor* descriptor;
  std::vector<Use> uses;
};
using Families = std::map<std::string_view, Family>;

/// Of every device, in addition to its collector's rows.
constexpr const MetricDescriptor* kOfDevices[] = {&catalog::info,
                                                  &catalog::up,
                                                  &catalog::observed_seconds,
                                                  &catalog::meter_source_info,
                                                  &catalog::partition_info,
                                                  &catalog::fabric_info,
                                                  &catalog::platform_info,
                                                  &catalog::operational_events};

void add(Families& families, const MetricDescriptor& descriptor, const Use* use) {
  Family& family = families[descriptor.name];
  family.descriptor = &descriptor;
  if (use != nullptr) family.uses.push_back(*use);
}

void add_rows(Families& families, const CollectorEntry& collector) {
  for (const RowDoc& row : collector.metrics()) {
    const Use use{collector.name, &row, false};
    add(families, *row.family, &use);
    const Use derived{collector.name, &row, true};
    for (const MetricDescriptor* counterpart : {row.counter, row.max, row.min}) {
      if (counterpart != nullptr) add(families, *counterpart, &derived);
    }
  }
}

Families all_families(std::span<const CollectorEntry> collectors) {
  Families families;
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

constexpr std::size_t kNoPair = 3;

/// Returns the only label in which two otherwise equal rows differ; kNoPair unless there is exactly one.
std::size_t only_difference(const Use& one, const Use& other) {
  const bool is_alike = one.collector == other.collector && one.integrated == other.integrated &&
                        one.row->source == other.row->source && one.row->tier == other.row->tier;
  std::size_t found = kNoPair;
  for (std::size_t i = 0; i < one.row->labels.pairs.size(); ++i) {
    const LabelSet::Pair& left = one.row->labels.pairs[i];
    const LabelSet::Pair& right = other.row->labels.pairs[i];
    if (left.name != right.name || (left.value != right.value && found != kNoPair)) return kNoPair;
    if (left.value != right.value) found = i;
  }
  return is_alike ? found : kNoPair;
}

/// Rows that differ in one label share one line: link="0", "1", "2".
using Uses = std::span<const Use>;

/// Returns "0" to "35" for consecutive numbers, otherwise the list of values.
std::string values_text(Uses uses, std::size_t pair) {
  const auto value = [&](std::size_t i) { return uses[i].row->labels.pairs[pair].value; };
  bool is_run = uses.size() > 3;
  std::string text = quoted(value(0));
  for (std::size_t i = 0; i < uses.size(); ++i) {
    is_run = is_run && value(i) == std::to_string(i);
    if (i > 0) text += ", " + quoted(value(i));
  }
  return is_run ? quoted(value(0)) + " to " + quoted(value(uses.size() - 1)) : text;
}

std::string labels_text(Uses uses) {
  const std::size_t varied = uses.size() > 1 ? only_difference(uses[0], uses[1]) : kNoPair;
  const auto& pairs = uses[0].row->labels.pairs;
  std::string text;
  for (std::size_t i = 0; i < pairs.size() && !pairs[i].name.empty(); ++i) {
    text.append(text.empty() ? "" : ", ").append(pairs[i].name).append("=");
    text.append(i == varied ? values_text(uses, i) : quoted(pairs[i].value));
  }
  return text.empty() ? "" : "`" + text + "`";
}

// A bar would end the cell of the table.
std::string cell(std::string_view source) {
  std::string text;
  for (const char c : source) text.append(c == '|' ? "\\|" : std::string(1, c));
  return text;
}

/// Returns the first rows that share one line.
Uses alike(Uses uses) {
  std::size_t count = 1;
  const std::size_t varied = uses.size() > 1 ? only_difference(uses[0], uses[1]) : kNoPair;
  while (varied != kNoPair && count < uses.size() && only_difference(uses[0], uses[count]) == varied) ++count;
  return uses.first(count);
}

void append_uses(std::string& text, Uses uses) {
  const Use& use = uses.front();
  text.append("| ").append(use.collector).append(" | ").append(labels_text(uses));
  text.append(" | ")
      .append(use.integrated ? "from " : "")
      .append("`")
      .append(cell(use.row->source))
      .append("`");
  text.append(" | ").append(to_string(use.row->tier)).append(" |\n");
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

void append_family(std::string& text, const Family& family) {
  const MetricDescriptor& metric = *family.descriptor;
  text.append("\n### ").append(metric.name).append("\n\n").append(to_string(metric.type));
  if (!metric.unit.empty()) text.append(", ").append(metric.unit);
  text.append(". ").append(metric.help).append(standard_text(metric)).append("\n");
  if (family.uses.empty()) return;
  text.append("\n| collector | labels | source | tier |\n|---|---|---|---|\n");
  for (Uses left = family.uses; !left.empty();) {
    const Uses line = alike(left);
    append_uses(text, line);
    left = left.subspan(line.size());
  }
}

constexpr std::string_view kMetricsHead = R"(# Metrics

Generated by `./dev docs` from the tables in the code; do not edit. Device series carry the labels
`gpu` (index) and `uuid`, and by default `vendor` and `model`, in addition to the labels below.
Partitions of a device (`gpu_partition_*`) also carry `partition` ("<profile>:<id>").
gpumeter omits values that a card does not report; a missing series never means 0.
The default sampling intervals of the tiers are 1 s (fast), 10 s (normal) and 60 s (slow).
Values of the tier `once` are read once.
A family's line names its series on the standard page, if they are not all: the metrics page by default
(`metrics.detail: standard`). See "The price of a series" in scrape.md.
)";

using health::Condition;

constexpr std::string_view kConditionsHead = R"(# Conditions

Generated by `./dev docs` from the tables in `exporter/health`; do not edit. The daemon judges every GPU once a
second. `gpu_health` has the state: `ok`, `degraded`, `failed`, or `unknown` while a GPU has not been read yet
or its driver is closed on request (SIGUSR1). `gpu_health_reason` has each reason with its severity and the
action that helps; `/api/v1/health` adds a sentence, the value, and the time for which the reason has held.
`--once` prints neither, because most conditions need history.

A condition holds while all parts of its test hold. A series that a card does not have passes no test. If a read
fails, the last value counts for up to 2 minutes while the GPU is up and awake. These
states are no condition: a card that sleeps, a PCIe link that idles at one lane, a card at its power limit,
errors over the card's lifetime, and memory pages that are retired already.

| action | meaning |
|---|---|
| `none` | watch it |
| `restart_job` | restart the job on the GPU; the GPU works |
| `drain` | give the GPU no new jobs, and look at its cooling, power, links or kernel log when the last one has ended |
| `reset` | reset the GPU when its jobs have ended |
| `reboot` | reboot the machine |
| `replace` | replace the card or the part |
)";

constexpr std::string_view kEnd = R"(
## How a reason ends

A reason ends when its test no longer holds, which needs no restart of the daemon. Two kinds stand longer, because
the GPU does not report that the cause is gone: events (XIDs, fatal PCIe errors, resets) for the time in their test,
and errors "since the driver was opened" until the driver is closed. To end them early after a reset, a repair or a
false alarm, close and open the drivers: `sudo systemctl kill --signal=USR1 gpumeter`, then `--signal=USR2`. The
counters on the page keep their values. A restart of the daemon ends events too, but not errors that the driver still
counts. A GPU that was removed on purpose is cleared by `sudo gpumeter forget UUID`.
)";

constexpr std::string_view kMachine = R"(
The machine's reason belongs to no GPU, so it has no series of `gpu_health_reason`. `gpumeter check`, the live page
and `/api/v1/health` show it. In Prometheus the alert GpuExpectedMissing compares `gpumeter_devices_expected` with
the GPUs that are read.
)";

constexpr std::string_view kTable =
    "| reason | severity | action | test | holds for | alert |\n|---|---|---|---|---|---|\n";

constexpr std::string_view kXids = R"(
## XIDs

Codes of NVIDIA's driver, with the resolution bucket of NVIDIA's XID catalogue. The reason is `xid_` and the
code. `failed` codes hold for 1 h after the last event, `degraded` ones for 10 min; closing the driver for a reset
(SIGUSR1) ends both. Codes of the class `job` end one process, and codes of the class `noise` need no action. Codes
without a severity are only counted in `gpu_xid_errors_total`.

| code | class | severity | action | bucket | meaning |
|---|---|---|---|---|---|
)";

std::string code(std::string_view text) { return "`" + std::string(text) + "`"; }

std::string hold_text(std::chrono::seconds hold) {
  if (hold == std::chrono::seconds(0)) return "";
  return std::to_string(hold.count()) + " s";
}

std::string row_of(const Condition& condition) {
  const std::string runbook = "runbooks.md#" + runbook_of(condition);
  return "| " + code(condition.reason) + " | " + std::string(to_string(condition.severity)) + " | " +
         code(to_string(condition.action)) + " | " + code(test_text(condition)) + " | " +
         hold_text(condition.hold) + " | [" + std::string(condition.alert) + "](" + runbook + ") |\n";
}

std::string row_of(const events::Xid& xid) {
  return "| " + std::string(xid.code) + " | " + std::string(events::kXidClassNames.of(xid.kind)) + " | " +
         std::string(xid.severity == events::Severity::none ? "" : to_string(xid.severity)) + " | " +
         code(to_string(xid.action)) + " | " + std::string(xid.bucket) + " | " + std::string(xid.meaning) +
         " |\n";
}

}  // namespace

std::string metrics_markdown(std::span<const CollectorEntry> collectors) {
  std::string text(kMetricsHead);
  for (const auto& [name, family] : all_families(collectors)) append_family(text, family);
  return text;
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

std::string conditions_markdown() {
  std::string text(kConditionsHead);
  text.append("\n## Machine\n\n").append(kTable).append(row_of(health::devices_missing()));
  text += kMachine;
  text.append("\n## GPUs\n\n").append(kTable);
  for (const health::Condition& condition : health::conditions()) text += row_of(condition);
  text += kXids;
  for (const events::Xid& xid : events::kXids) {
    if (xid.has_series) text += row_of(xid);
  }
  text += kEnd;
  return text;
}

}  // namespace gpumeter
