#include <optional>
#include <string>

#include "base/text.hpp"
#include "collectors/import/formats/formats.hpp"
#include "collectors/import/json.hpp"
#include "collectors/import/lines.hpp"

namespace gpumeter::import {
namespace {

constexpr std::string_view kMark = ":::MLLOG";
constexpr double kMillisecond = 1e-3;
constexpr double kNanosecond = 1e-9;

/// The log of one training run. Times are Unix times in milliseconds.
struct Training {
  std::string benchmark;
  std::optional<double> start;
  std::optional<double> stop;
  std::string status;
  std::optional<double> accuracy;
  std::optional<double> throughput;
};

std::optional<Error> take_event(Training& run, const Json& event) {
  const std::string_view key = event.text_of("key");
  const Json* const time = event.find("time_ms");
  const Json* const value = event.find("value");
  if (key.empty() || time == nullptr || !time->is(Json::Kind::number)) {
    return at_line(event.line, "an MLLOG line without key or time_ms");
  }
  if (key == "submission_benchmark") run.benchmark = event.text_of("value");
  if (key == "run_start") run.start = time->number;
  if (key == "run_stop") {
    run.stop = time->number;
    if (const Json* const metadata = event.find("metadata")) run.status = metadata->text_of("status");
  }
  if (value == nullptr) return std::nullopt;
  if (key == "eval_accuracy" && value->is(Json::Kind::number)) run.accuracy = value->number;
  if (key == "tracked_stats") {
    const Json* const throughput = value->find("throughput");
    if (throughput != nullptr && throughput->is(Json::Kind::number)) run.throughput = throughput->number;
  }
  return std::nullopt;
}

Result<Sheet> parse_training(const std::vector<TextLine>& lines) {
  Training run;
  for (const TextLine& line : lines) {
    const auto json = after(line.text, kMark);
    if (!json) continue;
    const Result<Json> event = parse_json(*json, line.number);
    if (!event) return event.error();
    if (auto error = take_event(run, *event)) return *error;
  }
  const std::size_t last = lines.size();
  if (!run.start || !run.stop) return at_line(last, "the run has no run_start and run_stop: the log is cut");
  if (run.status != "success")
    return at_line(last, "the run ended with the status " + gpumeter::quoted(run.status));
  if (*run.stop < *run.start) return at_line(last, "the run stopped before it started");
  const std::string name = run.benchmark.empty() ? "training" : run.benchmark;
  Sheet sheet;
  sheet.is_of_machine = true;
  sheet.timestamp = *run.stop * kMillisecond;
  GpuResults& gpu = sheet.gpus[0];
  gpu.result(name + " time to train", kSeconds, (*run.stop - *run.start) * kMillisecond);
  if (run.accuracy) gpu.result(name + " eval_accuracy", "value", *run.accuracy);
  if (run.throughput) gpu.result(name + " throughput", "samples_per_second", *run.throughput);
  return sheet;
}

/// mlperf_log_summary.txt of the load generator of inference.
class Summary {
 public:
  std::optional<Error> take(const TextLine& line) {
    line_ = line.number;
    std::string_view value = line.text;
    const std::string_view name = trimmed(take_until(value, ':'));
    value = trimmed(value);
    if (name == "Scenario") scenario_ = std::string(value);
    if (name == "Result is") validity_ = std::string(value);
    if (name.starts_with("No errors encountered")) is_whole_ = true;
    if (name.ends_with("ERRORS encountered. See detailed log.") || name.ends_with("errors encountered"))
      has_errors_ = true;
    const bool is_rate = name.ends_with("amples per second") || name.ends_with("okens per second");
    const bool is_latency = name.ends_with("latency (ns)");
    if (value.empty() || !(is_rate || is_latency) || name.starts_with("target")) return std::nullopt;
    const auto number = measure(value);
    if (!number) return at_line(line_, "no number: " + gpumeter::quoted(value));
    const std::string test =
        scenario_ + ' ' + std::string(is_latency ? name.substr(0, name.size() - 5) : name);
    if (is_rate)
      gpu().result(test, name.ends_with("okens per second") ? "tokens_per_second" : "samples_per_second",
                   *number);
    if (is_latency) gpu().result(test, kSeconds, *number * kNanosecond);
    return std::nullopt;
  }

  Result<Sheet> end() {
    if (has_errors_) return at_line(line_, "the load generator encountered errors");
    if (!is_whole_) return at_line(line_, "the summary ends before its last sentence: the file is cut");
    if (validity_ != "VALID") return at_line(line_, "MLPerf calls the result " + gpumeter::quoted(validity_));
    sheet_.is_of_machine = true;
    return std::move(sheet_);
  }

 private:
  GpuResults& gpu() { return sheet_.gpus[0]; }

  Sheet sheet_;
  std::size_t line_ = 1;
  std::string scenario_;
  std::string validity_;
  bool is_whole_ = false;
  bool has_errors_ = false;
};

}  // namespace

Result<Sheet> parse_mlperf(std::string_view text, const Context&) {
  const auto lines = lines_of(text);
  if (!lines) return lines.error();
  if (text.find(kMark) != std::string_view::npos) return parse_training(*lines);
  if (text.find("MLPerf Results Summary") == std::string_view::npos) {
    return at_line(1, "neither :::MLLOG lines nor mlperf_log_summary.txt");
  }
  Summary summary;
  for (const TextLine& line : *lines) {
    if (auto error = summary.take(line)) return *error;
  }
  return summary.end();
}

}  // namespace gpumeter::import
