#include "collectors/jobs/benchmarks/results.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/records.hpp"
#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/jobs/wire/line.hpp"
#include "collectors/jobs/wire/vocabulary.hpp"

namespace gpumeter::jobs::benchmarks {

/// The value of a label is one of a closed set, or any text.
struct ResultLabel {
  std::string_view name;                          ///< of the tag and of the exported label
  std::span<const std::string_view> values = {};  ///< empty: any text
};

/// A metric that a benchmark may send. Each label must be present.
struct ResultKind {
  enum class Role : std::uint8_t {
    rate,       ///< of the device; never negative. Has no label `suite`
    other,      ///< any number
    failed,     ///< 0 or 1: the suite's verdict
    timestamp,  ///< Unix time of the measurement in seconds
  };
  std::string_view name;
  Role role;
  const MetricDescriptor* family;
  std::span<const ResultLabel> labels = {};
};

namespace {

/// The suite of results whose sender names none.
constexpr std::string_view kOwnSuite = "gpumeter";

/// How a sender may name the GPU; the first tag that a line has counts.
constexpr std::string_view kDeviceTags[] = {"uuid", "pci", "gpu"};

/// One line.
struct Reading {
  const ResultKind* kind = nullptr;
  std::string_view device_tag;  ///< one of kDeviceTags
  std::string_view device;      ///< a part of the line
  std::string suite;
  std::vector<Label> labels;
  double value = 0;
};

using Role = ResultKind::Role;

constexpr std::string_view kOperations[] = {"read", "write", "copy", "triad"};
constexpr std::string_view kDirections[] = {"host_to_device", "device_to_host", "device_to_device"};

constexpr ResultLabel kOfFlops[] = {{"dtype", kDtypes}, {"backend"}};
constexpr ResultLabel kOfMemory[] = {{"operation", kOperations}};
constexpr ResultLabel kOfTransfer[] = {{"direction", kDirections}};
constexpr ResultLabel kOfResult[] = {{"suite"}, {"test"}, {"unit"}};

constexpr ResultKind kKinds[] = {
    {"gpu.benchmark.flops", Role::rate, &catalog::benchmark_flops, kOfFlops},
    {"gpu.benchmark.memory_bandwidth", Role::rate, &catalog::benchmark_memory_bandwidth, kOfMemory},
    {"gpu.benchmark.transfer", Role::rate, &catalog::benchmark_transfer, kOfTransfer},
    {"gpu.benchmark.result", Role::other, &catalog::benchmark_result, kOfResult},
    {"gpu.benchmark.failed", Role::failed, &catalog::benchmark_failed},
    {"gpu.benchmark.timestamp", Role::timestamp, &catalog::benchmark_timestamp},
};

/// Clocks of machines differ.
constexpr double kFuture = 3600;

/// The line has exactly one value.
std::optional<double> one_value(PackedValues values) noexcept {
  const auto first = values.next();
  if (!first || values.next()) return std::nullopt;
  return *first;
}

std::optional<Refusal> check_value(Role role, double value, Nanoseconds unix_now) noexcept {
  if (role != Role::other && value < 0) return Refusal::bad_value;
  if (role == Role::failed && value != 0 && value != 1) return Refusal::bad_value;
  if (role == Role::timestamp && value > to_seconds(unix_now) + kFuture) return Refusal::bad_timestamp;
  return std::nullopt;
}

bool may_have(const ResultLabel& label, std::string_view value) noexcept {
  const bool is_member = std::ranges::find(label.values, value) != label.values.end();
  return !value.empty() && (label.values.empty() || is_member);
}

bool take_labels(const ResultKind& kind, const Tags& tags, std::vector<Label>& labels) {
  for (const ResultLabel& label : kind.labels) {
    const std::string_view value = tags.find(label.name);
    if (!may_have(label, value)) return false;
    labels.push_back({std::string(label.name), label_text(value)});
  }
  return true;
}

const ResultKind* find_result_kind(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kKinds, name, &ResultKind::name);
  return found == std::end(kKinds) ? nullptr : found;
}

/// Parses a line with kPrefix. Refusals:
/// - malformed: no metric of DogStatsD;
/// - unknown_metric, wrong_type (no gauge);
/// - bad_value: no number, several, or one that the metric cannot have;
/// - bad_timestamp: more than an hour in the future;
/// - bad_label: a label is missing or outside its closed set;
/// - device: the line names no GPU.
/// Accepts any bytes. Any thread.
std::variant<Reading, Refusal> read(std::string_view line, Nanoseconds unix_now) {
  const Line parsed = parse_line(line);
  const auto* const metric = std::get_if<MetricLine>(&parsed);
  if (metric == nullptr) {
    const auto* const refusal = std::get_if<Refusal>(&parsed);
    return refusal != nullptr ? *refusal : Refusal::malformed;
  }
  Reading reading;
  reading.kind = find_result_kind(metric->name);
  if (reading.kind == nullptr) return Refusal::unknown_metric;
  if (metric->type != LineType::gauge) return Refusal::wrong_type;
  const std::optional<double> value = one_value(metric->values);
  if (!value) return Refusal::bad_value;
  if (const auto refusal = check_value(reading.kind->role, *value, unix_now)) return *refusal;
  reading.value = *value;
  const auto* const tag = std::ranges::find_if(
      kDeviceTags, [&](std::string_view name) { return !metric->tags.find(name).empty(); });
  if (tag == std::end(kDeviceTags)) return Refusal::device;
  reading.device_tag = *tag;
  reading.device = metric->tags.find(*tag);
  if (!take_labels(*reading.kind, metric->tags, reading.labels)) return Refusal::bad_label;
  const std::string_view suite = metric->tags.find("suite");
  reading.suite = label_text(suite.empty() ? kOwnSuite : suite);
  return reading;
}

bool is_of(const Reading& reading, const DeviceIdentity& device) {
  if (reading.device_tag == "uuid") return device.info.uuid == reading.device;
  if (reading.device_tag == "pci") return device.info.pci_address == reading.device;
  return parse_number<unsigned>(reading.device) == device.index;
}

const ResultKind& kind_of(Role role) noexcept { return *std::ranges::find(kKinds, role, &ResultKind::role); }

/// The last value of a label set counts.
void put(std::vector<Result>& results, Result result) {
  const auto same = [&](const Result& other) { return other.has_place_of(result); };
  const auto found = std::ranges::find_if(results, same);
  if (found == results.end()) {
    results.push_back(std::move(result));
  } else {
    found->value = result.value;
  }
}

void take(SuiteRun& run, Reading reading) {
  if (reading.kind->role == Role::timestamp) {
    run.timestamp = reading.value;
  } else if (reading.kind->role == Role::failed) {
    run.failed = reading.value != 0;
  } else {
    put(run.results, {reading.kind, std::move(reading.labels), reading.value});
  }
}

template <class Suites>
std::vector<const SuiteRun*> latest_first(const Suites& suites) {
  std::vector<const SuiteRun*> runs;
  for (const auto& [suite, run] : suites) runs.push_back(&run);
  std::ranges::stable_sort(runs, std::ranges::greater(), &SuiteRun::timestamp);
  return runs;
}

}  // namespace

void Results::receive(std::string_view payload, Devices devices, Nanoseconds unix_now, const Drop& drop) {
  ByDevice received;
  PayloadLines lines(payload);
  for (std::size_t count = 0; const auto line = lines.next(); ++count) {
    if (count >= kMaxLines) {
      drop(Refusal::too_many_lines);
      continue;
    }
    auto parsed = read(*line, unix_now);
    if (const auto* const refusal = std::get_if<Refusal>(&parsed)) {
      drop(*refusal);
      continue;
    }
    auto& reading = std::get<Reading>(parsed);
    const auto device =
        std::ranges::find_if(devices, [&](const DeviceIdentity& known) { return is_of(reading, known); });
    if (device == devices.end()) {
      drop(Refusal::device);
      continue;
    }
    Suites& suites = received[device->info.uuid];
    const auto [run, is_new] = suites.try_emplace(reading.suite, SuiteRun{to_seconds(unix_now), {}, {}});
    take(run->second, std::move(reading));
  }
  for (auto& [uuid, suites] : received) replace(uuid, suites, devices, drop);
}

void Results::replace(const std::string& uuid, Suites& runs, Devices devices, const Drop& drop) {
  if (!devices_.contains(uuid) && !make_room(devices)) return drop(Refusal::series_limit);
  ++version_;
  Suites& suites = devices_[uuid];
  for (const auto& [suite, run] : runs) suites.erase(suite);
  std::size_t used = 0;
  for (const auto& [suite, run] : suites) used += run.results.size();
  for (auto& [suite, run] : runs) {
    if (suites.size() >= kMostSuites) {
      drop(Refusal::series_limit);
      continue;
    }
    for (; run.results.size() > kMostResults - used; run.results.pop_back()) drop(Refusal::series_limit);
    used += run.results.size();
    suites.insert_or_assign(suite, std::move(run));
  }
}

bool Results::make_room(Devices devices) {
  if (devices_.size() < kMostDevices) return true;
  const auto is_unknown = [&](const auto& entry) {
    const auto same = [&](const DeviceIdentity& device) { return device.info.uuid == entry.first; };
    return std::ranges::none_of(devices, same);
  };
  const auto found = std::ranges::find_if(devices_, is_unknown);
  if (found == devices_.end()) return false;
  devices_.erase(found);
  return true;
}

std::vector<Result> Results::shown(const std::string& uuid) const {
  const auto device = devices_.find(uuid);
  if (device == devices_.end() || device->second.empty()) return {};
  std::vector<Result> shown;
  std::optional<bool> failed;
  const std::vector<const SuiteRun*> runs = latest_first(device->second);
  for (const SuiteRun* const run : runs) {
    const bool has_failed_since = failed.value_or(false);
    if (!failed) failed = run->failed;
    for (const Result& result : run->results) {
      const auto same = [&](const Result& other) { return other.has_place_of(result); };
      const bool is_stale = has_failed_since && result.kind->role == Role::rate;
      if (!is_stale && std::ranges::none_of(shown, same)) shown.push_back(result);
    }
  }
  if (failed) shown.push_back({&kind_of(Role::failed), {}, *failed ? 1.0 : 0.0});
  shown.push_back({&kind_of(Role::timestamp), {}, runs.front()->timestamp});
  std::ranges::stable_sort(shown, {}, &Result::kind);
  return shown;
}

namespace {

bool same_device(const DeviceIdentity& one, const DeviceIdentity& other) {
  return one.index == other.index && one.name == other.name && one.info == other.info;
}

}  // namespace

void Series::show(const Results& results, std::vector<DeviceIdentity> devices, Nanoseconds now) {
  if (results.version() == version_ && std::ranges::equal(devices, devices_, same_device)) return;
  version_ = results.version();
  devices_ = std::move(devices);
  for (const DeviceIdentity& device : devices_) {
    const Labels labels(device.info, device.index, device.name, labels_);
    for (const benchmarks::Result& result : results.shown(device.info.uuid)) {
      list_.add(*result.kind->family, labels.with(result.labels), result.value);
    }
  }
  list_.commit(now);
}

namespace {

double value_of(RecordReader& in) {
  const auto value = in.take<double>();
  in.check(is_acceptable(value));
  return value;
}

/// A value of a label, as read() accepts it.
std::string label_value(RecordReader& in, const ResultLabel& label) {
  auto value = in.take<std::string>();
  in.check(may_have(label, value) && label_text(value) == value);
  return value;
}

Result result_of(RecordReader& in) {
  Result result;
  result.kind = find_result_kind(in.take<std::string>());
  if (result.kind == nullptr || result.kind->role == Role::failed || result.kind->role == Role::timestamp) {
    in.fail();
    return result;
  }
  for (const ResultLabel& label : result.kind->labels) {
    result.labels.push_back({std::string(label.name), label_value(in, label)});
  }
  result.value = value_of(in);
  in.check(result.kind->role != Role::rate || result.value >= 0);
  return result;
}

SuiteRun run_of(RecordReader& in) {
  SuiteRun run;
  run.timestamp = value_of(in);
  const auto verdict = in.take<int>();
  in.check(verdict >= -1 && verdict <= 1);
  if (verdict >= 0) run.failed = verdict == 1;
  return run;
}

}  // namespace

std::string Results::saved() const {
  RecordWriter out;
  for (const auto& [uuid, suites] : devices_) {
    out.begin("device")(uuid);
    for (const auto& [suite, run] : suites) {
      out.begin("suite")(suite, run.timestamp, run.failed ? static_cast<int>(*run.failed) : -1);
      for (const Result& result : run.results) {
        out.begin("result")(result.kind->name);
        for (const Label& label : result.labels) out(label.value);
        out(result.value);
      }
    }
  }
  return out.take();
}

gpumeter::Result<Done> Results::restore(std::string_view section) {
  ByDevice devices;
  Suites* suites = nullptr;
  SuiteRun* run = nullptr;
  std::size_t results = 0;  // of the device
  RecordReader in(section);
  while (in.next()) {
    if (in.kind() == "device" && devices.size() < kMostDevices) {
      suites = &devices[in.take<std::string>()];
      run = nullptr;
      results = 0;
    } else if (in.kind() == "suite" && suites != nullptr && suites->size() < kMostSuites) {
      const auto suite = in.take<std::string>();
      run = &suites->insert_or_assign(suite, run_of(in)).first->second;
    } else if (in.kind() == "result" && run != nullptr && results++ < kMostResults) {
      run->results.push_back(result_of(in));
    } else {
      in.fail();
    }
  }
  if (in.failed()) return Error("the results of benchmarks, line " + std::to_string(in.line()));
  devices_ = std::move(devices);
  ++version_;
  return Done{};
}

}  // namespace gpumeter::jobs::benchmarks
