#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/json/scalars.hpp"
#include "exporter/json/api.hpp"

namespace gpumeter {
namespace {

constexpr int kDigits = 6;
constexpr int kTimeDigits = 13;  // milliseconds of a Unix time
constexpr int kSparklineDigits = 3;

/// Writes objects and lists without their commas being anyone's concern.
class Writer {
 public:
  Writer& key(std::string_view name) {
    separate();
    out_ += json_quoted(name) + ":";
    return *this;
  }
  void open(char bracket) { separate(), out_ += bracket; }
  void close(char bracket) { out_ += bracket; }
  void text(std::string_view value) { separate(), out_ += json_quoted(value); }
  void flag(bool value) { separate(), out_ += value ? "true" : "false"; }
  void number(double value, int digits = kDigits) { separate(), append_json_number(out_, value, digits); }
  void line() { separate(), out_ += '\n'; }
  std::string take() { return std::move(out_); }

 private:
  void separate() {
    constexpr std::string_view kNoComma = "[{:\n";
    if (!out_.empty() && kNoComma.find(out_.back()) == std::string_view::npos) out_ += ',';
  }
  std::string out_;
};

template <class Items, class Write>
void list(Writer& out, std::string_view name, const Items& items, Write write) {
  out.key(name).open('[');
  for (const auto& item : items) write(item);
  out.close(']');
}

void texts(Writer& out, std::string_view name, const std::vector<std::string>& values) {
  list(out, name, values, [&](const std::string& value) { out.text(value); });
}

// 16 bits hold 3 or 4 decimal digits; runs have 32 bits.
void values(Writer& out, const std::vector<float>& of_slots, int digits = kDigits) {
  out.open('[');
  for (const float value : of_slots) out.number(static_cast<double>(value), digits);
  out.close(']');
}

void numbers(Writer& out, std::string_view name, const std::map<std::string, double>& values) {
  out.key(name).open('{');
  for (const auto& [key, value] : values) out.key(key).number(value);
  out.close('}');
}

void finding(Writer& out, const health::Finding& it, Nanoseconds now) {
  out.open('{');
  out.key("reason").text(it.reason);
  out.key("severity").text(to_string(it.severity));
  out.key("action").text(to_string(it.action));
  out.key("text").text(it.text);
  out.key("alert").text(it.alert);
  out.key("runbook").text(it.runbook);
  out.key("since_seconds").number(std::max(0.0, to_seconds(now - it.since)));
  out.close('}');
}

void judgement(Writer& out, const GpuPicture& gpu, const LiveFacts& facts) {
  const health::DeviceHealth* found = nullptr;
  if (facts.report != nullptr) {
    const auto it = std::ranges::find(facts.report->devices, gpu.uuid, &health::DeviceHealth::uuid);
    if (it != facts.report->devices.end()) found = &*it;
  }
  const std::string_view by_up = gpu.up.value_or(false) ? "ok" : "failed";
  out.key("state").text(found == nullptr ? by_up : to_string(found->state));
  const std::vector<health::Finding> none;
  list(out, "reasons", found == nullptr ? none : found->findings,
       [&](const health::Finding& each) { finding(out, each, facts.monotonic); });
}

void holder(Writer& out, const GpuHolder& it) {
  out.open('{');
  out.key("kind").text(it.kind);
  out.key("workload").text(it.workload);
  out.key("share").number(it.share);
  out.key("user").text(it.user);
  out.close('}');
}

void run_name(Writer& out, const GpuRun& it) {
  out.open('{');
  out.key("run").text(it.run);
  out.key("user").text(it.user);
  out.close('}');
}

void values(Writer& out, const GpuPicture& gpu) {
  out.key("memory_size_bytes").number(gpu.memory_size_bytes, kTimeDigits);
  out.key("values").open('{');
  for (std::size_t i = 0; i < kGpuColumnCount; ++i) out.key(kGpuColumns[i].name).number(gpu.values[i]);
  out.close('}');
}

void gpu(Writer& out, const GpuPicture& it, const LiveFacts& facts) {
  out.key("gpu").text(it.gpu);
  out.key("uuid").text(it.uuid);
  out.key("vendor").text(it.vendor);
  out.key("model").text(it.model);
  out.key("name").text(it.name);
  out.key("pci_address").text(it.pci_address);
  out.key("up").flag(it.up.value_or(false));
  out.key("suspended").flag(it.is_suspended);
  judgement(out, it, facts);
  values(out, it);
  texts(out, "throttled", it.throttled);
  list(out, "holders", it.holders, [&](const GpuHolder& each) { holder(out, each); });
  list(out, "runs", it.runs, [&](const GpuRun& each) { run_name(out, each); });
}

void run(Writer& out, const RunPicture& it) {
  out.line();
  out.open('{');
  out.key("run").text(it.run);
  out.key("user").text(it.user);
  texts(out, "gpus", it.gpus);
  out.key("status").text(it.status);
  out.key("start_timestamp_seconds").number(it.start_timestamp_seconds, kTimeDigits);
  out.key("run_time_seconds").number(it.run_time_seconds);
  out.key("last_update_timestamp_seconds").number(it.last_update_timestamp_seconds, kTimeDigits);
  out.key("step").number(it.step, kTimeDigits);
  out.key("steps_total").number(it.steps, kTimeDigits);
  out.key("steps_per_second").number(it.steps_per_second);
  out.key("samples_total").number(it.samples, kTimeDigits);
  out.key("tokens_total").number(it.tokens, kTimeDigits);
  numbers(out, "loss", it.loss);
  numbers(out, "phase_seconds", it.phase_seconds);
  out.close('}');
}

}  // namespace

std::string live_json(const Picture& picture, const LiveFacts& facts) {
  Writer out;
  out.open('{');
  out.key("time").number(to_seconds(facts.realtime), kTimeDigits);
  out.key("simulated").flag(picture.is_simulated);
  out.key("gpus").open('[');
  for (std::size_t i = 0; i < picture.gpus.size(); ++i) {
    out.line();
    out.open('{');
    gpu(out, picture.gpus[i], facts);
    if (i < facts.sparklines.size()) values(out.key("utilization"), facts.sparklines[i], kSparklineDigits);
    out.close('}');
  }
  out.close(']');
  out.line();
  const std::vector<health::Finding> none;
  list(out, "machine", facts.report == nullptr ? none : facts.report->machine,
       [&](const health::Finding& each) { finding(out, each, facts.monotonic); });
  out.line();
  list(out, "runs", picture.runs, [&](const RunPicture& each) { run(out, each); });
  out.close('}');
  return out.take() + "\n";
}

namespace {

using Arguments = std::map<std::string_view, std::string_view>;

constexpr const char* kUsage =
    "use gpu=INDEX, uuid=UUID, or run=NAME and user=USER; and range=5m or range=6h";

Error wrong(std::string_view name, std::string_view value) {
  return Error(std::string(name).append("=").append(value).append(": ") + kUsage);
}

Result<Arguments> parse(std::span<const std::pair<std::string_view, std::string_view>> given) {
  Arguments arguments;
  for (const auto& [name, value] : given) {
    constexpr std::string_view kNames[] = {"gpu", "uuid", "run", "user", "range"};
    const bool is_known = std::ranges::find(kNames, name) != std::end(kNames);
    if (!is_known || !arguments.emplace(name, value).second) return wrong(name, value);
  }
  const auto has = [&](std::string_view name) { return arguments.contains(name) ? 1 : 0; };
  if (has("gpu") + has("uuid") + has("run") != 1 || has("user") > has("run")) return Error(kUsage);
  return arguments;
}

std::optional<Range> range_of(std::string_view text) {
  if (text == "5m") return Range::minutes;
  if (text == "6h") return Range::hours;
  return std::nullopt;
}

void times(Writer& out, const Stretch& stretch, double epoch_seconds) {
  const auto first = std::llround(epoch_seconds) + stretch.first_second;
  out.key("times").open('[');
  for (std::size_t i = 0; i < stretch.length; ++i) {
    out.number(static_cast<double>(first + static_cast<std::int64_t>(i) * stretch.step), kTimeDigits);
  }
  out.close(']');
}

void columns(Writer& out, const Stretch& stretch) {
  out.key("columns").open('{');
  for (const Stretch::Values& column : stretch.columns) {
    out.line();
    out.key(column.name);
    if (column.min.empty()) {
      values(out, column.mean);
      continue;
    }
    out.open('{');
    values(out.key("min"), column.min);
    values(out.key("mean"), column.mean);
    values(out.key("max"), column.max);
    out.close('}');
  }
  out.close('}');
}

void events(Writer& out, const History::Answer& answer) {
  list(out, "events", answer.events, [&](const GpuEvent& event) {
    out.line();
    out.open('{');
    const auto second = std::llround(answer.epoch_seconds) + event.second;
    out.key("time").number(static_cast<double>(second), kTimeDigits);
    out.key("name").text(event.name);
    out.key("kind").text(to_string(event.kind));
    out.close('}');
  });
}

std::string as_json(const History::Answer& answer, std::string_view range) {
  const bool is_run = answer.uuid.empty();
  Writer out;
  out.open('{');
  out.key(is_run ? "run" : "gpu").text(is_run ? answer.run.run : answer.gpu);
  out.key(is_run ? "user" : "uuid").text(is_run ? answer.run.user : answer.uuid);
  out.key("range").text(range);
  out.key("step_seconds").number(static_cast<double>(answer.stretch.step));
  out.line();
  times(out, answer.stretch, answer.epoch_seconds);
  out.line();
  columns(out, answer.stretch);
  if (!is_run) {
    out.line();
    events(out, answer);
  }
  out.close('}');
  return out.take() + "\n";
}

}  // namespace

Result<std::string> history_json(const History& history,
                                 std::span<const std::pair<std::string_view, std::string_view>> given) {
  Result<Arguments> parsed = parse(given);
  if (!parsed) return parsed.error();
  Arguments& arguments = *parsed;
  arguments.try_emplace("range", "5m");
  const std::optional<Range> range = range_of(arguments["range"]);
  if (!range) return wrong("range", arguments["range"]);
  const GpuRun run{std::string(arguments["run"]), std::string(arguments["user"])};
  const auto answer = run.run.empty() ? history.of_gpu(arguments["gpu"], arguments["uuid"], *range)
                                      : history.of_run(run, *range);
  if (answer) return as_json(*answer, arguments["range"]);
  const std::string subject = run.run.empty() ? "GPU" : "run of this user";
  return Error("there is no history of such a " + subject + "; /api/v1/live lists those that have one");
}

}  // namespace gpumeter
