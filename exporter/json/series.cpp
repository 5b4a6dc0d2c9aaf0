#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/scalars.hpp"
#include "exporter/json/api.hpp"
#include "exporter/json/writer.hpp"

namespace gpumeter {
namespace {

/// A family copied from the store, which may remove it.
struct FamilyCopy {
  std::string name, unit;
  MetricType type;
};

/// A series copied from the store, so that its text is rendered without holding the store's mutex.
struct Copy {
  std::shared_ptr<const FamilyCopy> family;
  SeriesPart part;
  Labels labels;
  double value;
  Nanoseconds committed_at;

  std::string name() const { return family->name + std::string(suffix_of(part)); }
};

struct Matcher {
  std::string label;
  std::string value;
  bool is_equal = true;

  bool matches(const Copy& series) const {
    if (label == "__name__") return is_equal == (value == series.family->name || value == series.name());
    const std::vector<Labels::Pair> pairs = series.labels.pairs();
    const auto found = std::ranges::find(pairs, label, &Labels::Pair::first);
    return is_equal == (value == (found == pairs.end() ? std::string_view() : found->second));
  }
};
using Selector = std::vector<Matcher>;

bool take(std::string_view& text, char token) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  if (!text.starts_with(token)) return false;
  text.remove_prefix(1);
  return true;
}

std::string take_name(std::string_view& text) {
  std::string name(text.substr(0, text.find_first_of(" {}=!,\"")));
  text.remove_prefix(name.size());
  return name;
}

/// `{label="value",label!="value"}`; `\` makes the next character of a value literal.
bool take_matchers(std::string_view& text, Selector& selector) {
  for (bool is_last = false; !take(text, '}'); is_last = !take(text, ',')) {
    Matcher& matcher = selector.emplace_back(take_name(text));
    matcher.is_equal = !take(text, '!');
    if (is_last || matcher.label.empty() || !take(text, '=') || !take(text, '"')) return false;
    for (; !text.empty() && text.front() != '"'; text.remove_prefix(1)) {
      if (text.front() == '\\' && text.size() > 1) text.remove_prefix(1);
      matcher.value += text.front();
    }
    if (!take(text, '"')) return false;
  }
  return true;
}

Result<Selector> parse(std::string_view text) {
  std::string_view rest = text;
  Selector selector;
  if (std::string name = take_name(rest); !name.empty()) selector.emplace_back("__name__", std::move(name));
  const bool is_right = !take(rest, '{') || take_matchers(rest, selector);
  if (is_right && rest.find_first_not_of(' ') == std::string_view::npos && !selector.empty()) return selector;
  return Error("match=" + std::string(text) +
               ": use a name, label matchers with = or !=, or both, such as "
               "gpu_power_watts{gpu=\"0\",sensor!=\"board\"}; repeat match for alternatives");
}

void series(JsonWriter& out, const Copy& it, Nanoseconds now) {
  out.open('{').text("name", it.name()).key("labels").open('{');
  for (const auto& [name, value] : it.labels.pairs()) out.text(name, value);
  out.close('}').exact("value", it.value).text("unit", it.family->unit);
  out.text("type", to_string(it.family->type));
  out.exact("age_seconds", std::max(0.0, to_seconds(now - it.committed_at))).close('}');
}

Result<std::vector<Selector>> parse(std::span<const std::string_view> match) {
  std::vector<Selector> selectors;
  for (const std::string_view text : match) {
    Result<Selector> selector = parse(text);
    if (!selector) return selector.error();
    selectors.push_back(*std::move(selector));
  }
  return selectors;
}

bool selects(const std::vector<Selector>& selectors, const Copy& series) {
  return selectors.empty() || std::ranges::any_of(selectors, [&](const Selector& selector) {
           return std::ranges::all_of(selector, [&](const Matcher& each) { return each.matches(series); });
         });
}

// The text is made from the copies after the walk, so that no commit waits for it.
std::vector<Copy> copied(const Store& store, const std::vector<Selector>& selectors) {
  std::vector<Copy> selected;
  store.walk_in_slices([&](const Family& family) {
    const MetricDescriptor& of = family.descriptor();
    const auto copy =
        std::make_shared<const FamilyCopy>(FamilyCopy{std::string(of.name), std::string(of.unit), of.type});
    family.for_each([&](const Series& it) {
      if (it.part() == SeriesPart::fine_bucket) return;
      Copy series{copy, it.part(), it.labels(), it.value(), it.committed_at()};
      if (selects(selectors, series)) selected.push_back(std::move(series));
    });
  });
  return selected;
}

}  // namespace

Result<std::string> series_json(const Store& store, std::span<const std::string_view> match,
                                Nanoseconds now) {
  const Result<std::vector<Selector>> selectors = parse(match);
  if (!selectors) return selectors.error();
  JsonWriter out;
  out.open('{').key("series").open('[');
  for (const Copy& copy : copied(store, *selectors)) series(out.line(), copy, now);
  out.close_lines(']').close('}');
  return out.take();
}

namespace {

// Milliseconds and milliwatt-hours are noise.
constexpr int kDigits = 12;
constexpr int kFew = 6;  // in a line for people

/// Whose it is, and what its owner calls it.
constexpr std::string_view kNames[] = {"user",
                                       "slurm_account",
                                       "slurm_job_name",
                                       "slurm_partition",
                                       "slurm_array_job",
                                       "slurm_array_task",
                                       "k8s_namespace",
                                       "k8s_pod"};

struct Figures {
  std::optional<double> joules;
  double held = 0;
  std::optional<double> busy, idle, memory;
  std::map<std::string, double> throttled;

  std::optional<double> idle_ratio() const {
    return idle && held > 0 ? std::optional(std::min(*idle / held, 1.0)) : std::nullopt;
  }
  std::optional<double> busy_ratio() const {
    const std::optional<double> rest = idle_ratio();
    return rest ? std::optional(1 - *rest) : std::nullopt;
  }
};

void add(std::optional<double>& sum, std::optional<double> amount) {
  if (amount) sum = sum.value_or(0) + *amount;
}

void add(Figures& sum, const DeviceCost& cost) {
  add(sum.joules, cost.joules);
  sum.held += cost.held_seconds;
  add(sum.busy, cost.busy_seconds);
  add(sum.idle, cost.idle_seconds);
  if (cost.peak_memory) sum.memory = std::max(sum.memory.value_or(0), *cost.peak_memory);
  for (const auto& [cause, seconds] : cost.throttled_seconds) sum.throttled[cause] += seconds;
}

// A device without busy time makes the sum of idle time incomplete, so the ratio is of the others.
Figures figures_of(const WorkloadCost& workload) {
  Figures sum;
  for (const DeviceCost& cost : workload.devices) add(sum, cost);
  double measured = 0;
  for (const DeviceCost& cost : workload.devices) measured += cost.idle_seconds ? cost.held_seconds : 0;
  if (sum.idle && measured > 0) sum.idle = *sum.idle * sum.held / measured;
  return sum;
}

double time_of(Nanoseconds time) { return to_seconds(std::chrono::floor<std::chrono::milliseconds>(time)); }

void figures(JsonWriter& out, const Figures& it) {
  out.number("joules", it.joules, kDigits).number("gpu_seconds", it.held, kDigits);
  out.number("busy_seconds", it.busy, kDigits).number("busy_ratio", it.busy_ratio(), kDigits);
  out.number("idle_ratio", it.idle_ratio(), kDigits).number("peak_memory_bytes", it.memory, kDigits);
  out.key("throttled_seconds").open('{');
  for (const auto& [cause, seconds] : it.throttled) out.number(cause, seconds, kDigits);
  out.close('}');
}

void device(JsonWriter& out, const DeviceCost& cost) {
  Figures own;
  add(own, cost);
  out.open('{').text("gpu", std::to_string(cost.index)).text("uuid", cost.uuid);
  figures(out, own);
  out.close('}');
}

/// Of two labels of one name the first counts, as on the page.
std::vector<Label> labels_of(const WorkloadCost& workload) {
  std::vector<Label> labels;
  for (const Label& label : workload.labels) {
    if (std::ranges::find(labels, label.name, &Label::name) == labels.end()) labels.push_back(label);
  }
  return labels;
}

void workload(JsonWriter& out, const WorkloadCost& it) {
  out.open('{').text("kind", it.kind).text("workload", it.workload);
  out.text("state", it.has_ended ? "ended" : "running");
  out.number("start_timestamp_seconds", time_of(it.begun), kDigits);
  out.number("end_timestamp_seconds", it.has_ended ? time_of(it.seen) : kAbsent, kDigits)
      .key("labels")
      .open('{');
  for (const Label& label : labels_of(it)) out.text(label.name, label.value);
  figures(out.close('}').line("  "), figures_of(it));
  out.line("  ").key("devices").open('[');
  for (const DeviceCost& cost : it.devices) device(&cost == it.devices.data() ? out : out.line("   "), cost);
  out.close(']').close('}');
}

std::string plain_or_quoted(const std::string& value) {
  const bool is_plain = !value.empty() && value.find_first_of(" \t\n\"'=\\") == std::string::npos;
  return is_plain ? value : json_quoted(value);
}

}  // namespace

std::string workloads_json(std::span<const WorkloadCost> workloads) {
  JsonWriter out;
  out.open('{').key("workloads").open('[');
  for (const WorkloadCost& each : workloads) workload(out.line(), each);
  out.close_lines(']').close('}');
  return out.take();
}

std::string workload_line(const WorkloadCost& workload) {
  const Figures figures = figures_of(workload);
  std::string line = "kind=" + plain_or_quoted(workload.kind) +
                     " workload=" + plain_or_quoted(workload.workload) +
                     " state=" + (workload.has_ended ? "ended" : "running");
  const auto add_text = [&](const std::string& name, const std::string& value) {
    line += " " + name + "=" + plain_or_quoted(value);
  };
  const auto add_number = [&](const std::string& name, std::optional<double> value, int digits = kFew) {
    if (!value) return;
    line += " " + name + "=";
    append_json_number(line, *value, digits);
  };
  for (const Label& label : labels_of(workload)) {
    if (std::ranges::find(kNames, label.name) != std::end(kNames)) add_text(label.name, label.value);
  }
  add_number("gpus", static_cast<double>(workload.devices.size()));
  add_number("gpu_seconds", figures.held);
  add_number("busy_ratio", figures.busy_ratio(), 3);
  add_number("idle_ratio", figures.idle_ratio(), 3);
  add_number("busy_seconds", figures.busy);
  add_number("joules", figures.joules);
  add_number("peak_memory_bytes", figures.memory, kDigits);
  for (const auto& [cause, seconds] : figures.throttled) {
    if (seconds > 0) add_number("throttled_" + cause + "_seconds", seconds);
  }
  return line + "\n";
}

}  // namespace gpumeter
