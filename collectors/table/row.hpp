#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "collectors/api/catalog.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/table/integral.hpp"

namespace gpumeter {

/// Raw units to base units.
inline constexpr double kPercent = 1e-2;
inline constexpr double kMilli = 1e-3;
inline constexpr double kMicro = 1e-6;
inline constexpr double kKibi = 1024;
inline constexpr double kMebi = 1024 * 1024;
inline constexpr double kMega = 1e6;

/// Where a reader gets its value: a file, a call or a field by name (shown in the docs), and a number for
/// readers that want one (a bit mask, an index).
struct ReadSource {
  std::string_view name;
  std::uint64_t argument = 0;
};

/// How one value is got from a Context.
template <class Context>
struct Reader {
  /// At attach: the handle that read() gets each time, or nullopt where this device has no such source.
  std::optional<int> (*bind)(Context&, const ReadSource&);
  /// Each pass: the value in the source's unit. May block in the driver.
  Sample (*read)(Context&, int handle) noexcept;
  ReadSource source;
  /// The value is a counter that the reader itself makes up over Pass::elapsed (see SettlesPasses). It counts
  /// only if the whole pass does.
  bool integrates = false;
};

/// Series that a row's gauge feeds beside itself: a counter by integration, extremes of the last minute.
struct Derived {
  Integration how = Integration::none;
  const MetricDescriptor* counter = nullptr;
  const MetricDescriptor* max = nullptr;
  const MetricDescriptor* min = nullptr;

  constexpr Derived with_extremes(const MetricDescriptor& highest, const MetricDescriptor& lowest) const {
    return {how, counter, &highest, &lowest};
  }
};
constexpr Derived averaged(const MetricDescriptor& counter) { return {Integration::averaged, &counter}; }
constexpr Derived instantaneous(const MetricDescriptor& counter) {
  return {Integration::instantaneous, &counter};
}
constexpr Derived state(const MetricDescriptor& counter) { return {Integration::state, &counter}; }

/// What real hardware taught. A value outside [min, max], in base units, is a failed read.
struct Traits {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool zero_is_unknown = false;  ///< the driver writes 0 where it does not know
  bool wakes = true;             ///< reading it wakes a sleeping device, so it is then left alone
  int counter_bits = 64;         ///< width at which a hardware counter wraps: 32 or 64
  bool forgets = false;  ///< the source misses what happens while it cannot be read: a counter leaves the
                         ///< page at its first failed read; `unsupported` is no error, and may end soon
  std::string_view counted_by =
      "hardware";  ///< who counted a row that is a counter, as gpu_meter_source_info says
};
inline constexpr Traits kRatio{.min = 0, .max = 1};
inline constexpr Traits kNeverWakes{.wakes = false};

/// One metric of one vendor. Of several rows of the same family and labels the first whose reader binds on a
/// device is its source, so fallbacks are rows too, below what they stand in for.
template <class Context>
struct MetricRow {
  const MetricDescriptor* family;
  LabelSet labels;
  Reader<Context> reader;
  double scale;  ///< source's unit -> base unit
  Tier tier;
  Derived derived = {};
  Traits traits = {};

  constexpr bool same_series(const MetricRow& other) const noexcept {
    return family == other.family && labels == other.labels;
  }
};

template <class Context>
constexpr bool valid_row(const MetricRow<Context>& row) noexcept {
  const bool scale_ok = row.scale > 0 && row.scale < std::numeric_limits<double>::infinity();
  const bool counter_ok =
      (row.derived.how == Integration::none) == (row.derived.counter == nullptr) &&
      (row.derived.counter == nullptr ||
       (row.family->type == MetricType::gauge && row.derived.counter->type == MetricType::counter));
  const bool extremes_ok = (row.derived.max == nullptr) == (row.derived.min == nullptr);
  const bool traits_ok =
      row.traits.min < row.traits.max && (row.traits.counter_bits == 32 || row.traits.counter_bits == 64);
  return row.family != nullptr && row.reader.bind != nullptr && row.reader.read != nullptr &&
         !row.reader.source.name.empty() && !row.traits.counted_by.empty() && scale_ok && counter_ok &&
         extremes_ok && traits_ok;
}

/// For a static_assert beside the table.
template <class Rows>
constexpr bool valid_table(const Rows& rows) noexcept {
  for (const auto& row : rows) {
    if (!valid_row(row)) return false;
  }
  return true;
}

template <class Context>
constexpr RowDoc doc_of(const MetricRow<Context>& row) noexcept {
  return {row.family,          row.labels,      row.reader.source.name, row.tier,
          row.derived.counter, row.derived.max, row.derived.min};
}

}  // namespace gpumeter
