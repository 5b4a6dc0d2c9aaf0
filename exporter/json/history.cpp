#include "exporter/json/history.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "base/json/scalars.hpp"

namespace gpumeter {
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

// 16 bits hold 3 or 4 decimal digits; runs have 32 bits.
void append_list(std::string& out, const std::vector<float>& values) {
  constexpr int kDigits = 6;
  out += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 0) out += ',';
    append_json_number(out, static_cast<double>(values[i]), kDigits);
  }
  out += ']';
}

void append_times(std::string& out, const Stretch& stretch, double epoch_seconds) {
  const auto first = std::llround(epoch_seconds) + stretch.first_second;
  for (std::size_t i = 0; i < stretch.length; ++i) {
    out += (i == 0 ? "" : ",") + std::to_string(first + static_cast<std::int64_t>(i) * stretch.step);
  }
}

void append_columns(std::string& out, const Stretch& stretch) {
  for (const Stretch::Values& column : stretch.columns) {
    out += (out.ends_with('{') ? "\n" : ",\n") + json_quoted(column.name) + ":";
    if (column.min.empty()) {
      append_list(out, column.mean);
      continue;
    }
    out += "{\"min\":";
    append_list(out, column.min);
    out += ",\"mean\":";
    append_list(out, column.mean);
    out += ",\"max\":";
    append_list(out, column.max);
    out += '}';
  }
}

void append_events(std::string& out, const History::Answer& answer) {
  out += ",\n\"events\":[";
  for (const GpuEvent& event : answer.events) {
    out += (out.ends_with('[') ? "\n" : ",\n");
    out += "{\"time\":" + std::to_string(std::llround(answer.epoch_seconds) + event.second) +
           ",\"name\":" + json_quoted(event.name) + ",\"kind\":" + json_quoted(to_string(event.kind)) + "}";
  }
  out += ']';
}

std::string as_json(const History::Answer& answer, std::string_view range) {
  const bool is_run = answer.uuid.empty();
  std::string out =
      is_run ? "{\"run\":" + json_quoted(answer.run.run) + ",\"user\":" + json_quoted(answer.run.user)
             : "{\"gpu\":" + json_quoted(answer.gpu) + ",\"uuid\":" + json_quoted(answer.uuid);
  out += ",\"range\":" + json_quoted(range) + ",\"step_seconds\":" + std::to_string(answer.stretch.step);
  out += ",\n\"times\":[";
  append_times(out, answer.stretch, answer.epoch_seconds);
  out += "],\n\"columns\":{";
  append_columns(out, answer.stretch);
  out += '}';
  if (!is_run) append_events(out, answer);
  return out + "}\n";
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
