#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/series.hpp"
#include "collectors/jobs/wire/dogstatsd_line.hpp"

/// Results of active benchmarks: `gpumeter-benchmark` measures them, `gpumeter import` reads them from files
/// of other programs.
namespace gpumeter::jobs::benchmarks {

/// A name in a message that begins with this belongs to a benchmark.
inline constexpr std::string_view kPrefix = "gpu.benchmark.";
/// The suite of results whose sender names none.
inline constexpr std::string_view kOwnSuite = "gpumeter";

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

/// All rows. Constant, any thread.
std::span<const ResultKind> result_kinds() noexcept;
/// Returns nullptr if there is no such metric.
const ResultKind* find_result_kind(std::string_view name) noexcept;

/// How the sender names the GPU.
struct DeviceName {
  enum class Kind : std::uint8_t { uuid, pci, index };
  Kind kind = Kind::uuid;
  std::string_view value;  ///< a part of the line
};

/// One line.
struct Reading {
  const ResultKind* kind = nullptr;
  DeviceName device;
  std::string suite;
  std::vector<Label> labels;
  double value = 0;
};

/// Parses a line with kPrefix. Refusals:
/// - malformed: no metric of DogStatsD;
/// - unknown_metric, wrong_type (no gauge);
/// - bad_value: no number, several, or one that the metric cannot have;
/// - bad_timestamp: more than an hour in the future;
/// - bad_label: a label is missing or outside its closed set;
/// - device: the line names no GPU.
/// Accepts any bytes. Any thread.
std::variant<Reading, Refusal> read(std::string_view line, Nanoseconds unix_now);

}  // namespace gpumeter::jobs::benchmarks
