#include "collectors/jobs/benchmarks/reading.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "collectors/api/catalog.hpp"
#include "collectors/jobs/wire/label_text.hpp"
#include "collectors/jobs/wire/vocabulary.hpp"

namespace gpumeter::jobs::benchmarks {
namespace {

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

std::optional<DeviceName> device_of(const Tags& tags) noexcept {
  using Kind = DeviceName::Kind;
  constexpr std::pair<std::string_view, Kind> kNames[] = {
      {"uuid", Kind::uuid}, {"pci", Kind::pci}, {"gpu", Kind::index}};
  for (const auto& [tag, kind] : kNames) {
    if (const std::string_view value = tags.find(tag); !value.empty()) return DeviceName{kind, value};
  }
  return std::nullopt;
}

bool take_labels(const ResultKind& kind, const Tags& tags, std::vector<Label>& labels) {
  for (const ResultLabel& label : kind.labels) {
    const std::string_view value = tags.find(label.name);
    const bool is_closed = !label.values.empty();
    const bool is_member = std::ranges::find(label.values, value) != label.values.end();
    if (value.empty() || (is_closed && !is_member)) return false;
    labels.push_back({std::string(label.name), label_text(value)});
  }
  return true;
}

}  // namespace

std::span<const ResultKind> result_kinds() noexcept { return kKinds; }

const ResultKind* find_result_kind(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kKinds, name, &ResultKind::name);
  return found == std::end(kKinds) ? nullptr : found;
}

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
  const std::optional<DeviceName> device = device_of(metric->tags);
  if (!device) return Refusal::device;
  reading.device = *device;
  if (!take_labels(*reading.kind, metric->tags, reading.labels)) return Refusal::bad_label;
  const std::string_view suite = metric->tags.find("suite");
  reading.suite = label_text(suite.empty() ? kOwnSuite : suite);
  return reading;
}

}  // namespace gpumeter::jobs::benchmarks
