#include "exporter/json/live.hpp"

#include <algorithm>

#include "base/json/scalars.hpp"

namespace gpumeter {
namespace {

constexpr int kDigits = 6;
constexpr int kTimeDigits = 13;  // milliseconds of a Unix time

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

void sparkline(Writer& out, const std::vector<float>& values) {
  constexpr int kSparklineDigits = 3;
  list(out, "utilization", values,
       [&](float each) { out.number(static_cast<double>(each), kSparklineDigits); });
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
    if (i < facts.sparklines.size()) sparkline(out, facts.sparklines[i]);
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

}  // namespace gpumeter
