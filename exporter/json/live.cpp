#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "exporter/json/api.hpp"
#include "exporter/json/writer.hpp"

namespace gpumeter {
namespace {

constexpr int kDigits = JsonWriter::kDigits;
constexpr int kTimeDigits = JsonWriter::kTimeDigits;
constexpr int kSparklineDigits = 3;

// 16 bits hold 3 or 4 decimal digits; runs have 32 bits.
void values(JsonWriter& out, const std::vector<float>& of_slots, int digits = kDigits) {
  out.open('[');
  for (const float value : of_slots) out.number(static_cast<double>(value), digits);
  out.close(']');
}

void numbers(JsonWriter& out, std::string_view name, const std::map<std::string, double>& values) {
  out.key(name).open('{');
  for (const auto& [key, value] : values) out.number(key, value);
  out.close('}');
}

void findings(JsonWriter& out, std::string_view name, std::span<const health::Finding> all, Nanoseconds now) {
  out.list(name, all, [&](const health::Finding& it) {
    out.open('{').text("reason", it.reason).text("severity", to_string(it.severity));
    out.text("action", to_string(it.action)).text("text", it.text).text("alert", it.alert);
    out.text("runbook", it.runbook).number("since_seconds", std::max(0.0, to_seconds(now - it.since)));
    out.close('}');
  });
}

void judgement(JsonWriter& out, const GpuPicture& gpu, const LiveFacts& facts) {
  const health::DeviceHealth* found = nullptr;
  if (facts.report != nullptr) {
    const auto it = std::ranges::find(facts.report->devices, gpu.uuid, &health::DeviceHealth::uuid);
    if (it != facts.report->devices.end()) found = &*it;
  }
  const std::string_view by_up = gpu.up.value_or(false) ? "ok" : "failed";
  out.text("state", found == nullptr ? by_up : to_string(found->state));
  const std::vector<health::Finding> none;
  findings(out, "reasons", found == nullptr ? none : found->findings, facts.monotonic);
}

void gpu(JsonWriter& out, const GpuPicture& it, const LiveFacts& facts) {
  out.text("gpu", it.gpu).text("uuid", it.uuid).text("vendor", it.vendor).text("model", it.model);
  out.text("name", it.name).text("pci_address", it.pci_address);
  out.flag("up", it.up.value_or(false)).flag("suspended", it.is_suspended);
  judgement(out, it, facts);
  out.number("memory_size_bytes", it.memory_size_bytes, kTimeDigits).key("values").open('{');
  for (std::size_t i = 0; i < kGpuColumnCount; ++i) out.number(kGpuColumns[i].name, it.values[i]);
  out.close('}').list("throttled", it.throttled, [&](const std::string& cause) { out.text(cause); });
  out.list("holders", it.holders, [&](const GpuHolder& each) {
    out.open('{').text("kind", each.kind).text("workload", each.workload).number("share", each.share);
    out.text("user", each.user).close('}');
  });
  out.list("runs", it.runs, [&](const GpuRun& each) {
    out.open('{').text("run", each.run).text("user", each.user).close('}');
  });
}

void run(JsonWriter& out, const RunPicture& it) {
  out.line().open('{').text("run", it.run).text("user", it.user);
  out.list("gpus", it.gpus, [&](const std::string& each) { out.text(each); }).text("status", it.status);
  out.number("start_timestamp_seconds", it.start_timestamp_seconds, kTimeDigits);
  out.number("run_time_seconds", it.run_time_seconds);
  out.number("last_update_timestamp_seconds", it.last_update_timestamp_seconds, kTimeDigits);
  out.number("step", it.step, kTimeDigits).number("steps_total", it.steps, kTimeDigits);
  out.number("steps_per_second", it.steps_per_second);
  out.number("samples_total", it.samples, kTimeDigits).number("samples_per_second", it.samples_per_second);
  out.number("tokens_total", it.tokens, kTimeDigits).number("tokens_per_second", it.tokens_per_second);
  numbers(out, "loss", it.loss);
  numbers(out, "phase_seconds", it.phase_seconds);
  out.close('}');
}

}  // namespace

std::string live_json(const Picture& picture, const LiveFacts& facts) {
  JsonWriter out;
  out.open('{').number("time", to_seconds(facts.realtime), kTimeDigits);
  out.text("host", facts.host).flag("simulated", picture.is_simulated).key("gpus").open('[');
  for (std::size_t i = 0; i < picture.gpus.size(); ++i) {
    out.line().open('{');
    gpu(out, picture.gpus[i], facts);
    if (i < facts.sparklines.size()) values(out.key("utilization"), facts.sparklines[i], kSparklineDigits);
    out.close('}');
  }
  out.close(']').line();
  const std::vector<health::Finding> none;
  findings(out, "machine", facts.report == nullptr ? none : facts.report->machine, facts.monotonic);
  out.line().list("runs", picture.runs, [&](const RunPicture& each) { run(out, each); }).close('}');
  return out.take();
}

std::string picture_of_stream(std::string_view json) {
  std::string message = "event: picture\n";
  while (!json.empty()) message.append("data: ").append(take_until(json, '\n')).append("\n");
  return message += '\n';
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

void columns(JsonWriter& out, const Stretch& stretch) {
  out.key("columns").open('{');
  for (const Stretch::Values& column : stretch.columns) {
    out.line().key(column.name);
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

std::string as_json(const History::Answer& answer, std::string_view range) {
  const bool is_run = answer.uuid.empty();
  const Stretch& stretch = answer.stretch;
  JsonWriter out;
  const auto time = [&](std::int64_t second) {
    return static_cast<double>(std::llround(answer.epoch_seconds) + second);
  };
  out.open('{').text(is_run ? "run" : "gpu", is_run ? answer.run.run : answer.gpu);
  out.text(is_run ? "user" : "uuid", is_run ? answer.run.user : answer.uuid).text("range", range);
  out.number("step_seconds", static_cast<double>(stretch.step)).line().key("times").open('[');
  for (std::size_t i = 0; i < stretch.length; ++i) {
    out.number(time(stretch.first_second + static_cast<std::int64_t>(i) * stretch.step), kTimeDigits);
  }
  out.close(']').line();
  columns(out, stretch);
  if (!is_run) {
    out.line().list("events", answer.events, [&](const GpuEvent& event) {
      out.line().open('{').number("time", time(event.second), kTimeDigits).text("name", event.name);
      out.text("kind", to_string(event.kind)).close('}');
    });
  }
  out.close('}');
  return out.take();
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
