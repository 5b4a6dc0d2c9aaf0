#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/table/derived.hpp"
#include "collectors/table/row.hpp"

namespace gpumeter {

/// Collects the series of a device while its rows are bound.
class SeriesPlan {
 public:
  /// What is planned from here on belongs to this slice of the device; adds its gpu_partition_info.
  void begin_partition(const Partition& partition);

  /// True where the series is planned already.
  bool has(const MetricDescriptor& family, const LabelSet& labels) const;

  /// The slot of the new series; nullopt where it is planned already: the first source of a quantity is
  /// its source, so a hardware counter stands above the row that would integrate the same one.
  std::optional<std::size_t> add(const MetricDescriptor& family, const LabelSet& labels);

  /// A series that is 1 while the device is attached.
  void add_constant(SeriesSpec series);

  /// The slot of the counter's gpu_meter_source_info, one for each quantity; source is "hardware",
  /// "integrated" or in the row's own word.
  std::size_t add_source(const MetricDescriptor& counter, std::string_view source);

  /// Ends the plan.
  std::vector<SeriesSpec> take() { return std::move(series_); }

  /// Slots of series that are 1 while the device is attached.
  const std::vector<std::size_t>& constants() const noexcept { return constants_; }

 private:
  struct Key {
    const MetricDescriptor* family;
    LabelSet labels;
    std::string partition;  // empty: of the whole device
  };
  std::vector<SeriesSpec> series_;
  std::vector<Key> keys_;
  std::map<std::string, std::size_t> sources_;  // by quantity
  std::vector<std::size_t> constants_;
  std::string partition_;
};

/// What the rows of one series remember about one device: its slots, its integral, its failures. Outlives a
/// loss of the device, so that counters go on. Lane thread.
class RowState {
 public:
  /// How take() ended.
  enum class Outcome : std::uint8_t {
    good,
    idle,    ///< no value, as expected: the source never had one, or has none now
    failed,  ///< the read failed
    gap,     ///< the read failed, and a counter is made of it: the pass cannot be observed
  };

  /// Reserves the slots of `row`, which must have static storage. Rows of one series share a state; if a
  /// device came back with another source, its counter goes on without a jump. `settles`: the row's reader
  /// counts by itself (Reader::settles). False: the series is already planned.
  bool plan(const RowFacts& row, bool settles, SeriesPlan& plan);

  /// The device was opened: its sources have not been read yet.
  void attach() noexcept;

  /// False while a row whose source never had a value waits for its next try.
  bool due(Nanoseconds now) const noexcept { return has_worked_ || now >= next_try_; }

  /// A read has ended; `raw` is in the source's unit. A reading that feeds a counter over observed time is
  /// kept until settle().
  Outcome take(const Pass& pass, Sample raw, SampleSink& sink) noexcept;

  /// True if settle() must be called at the end of each pass.
  bool integrates() const noexcept { return is_integrating_; }

  /// The pass has ended. The reading that take() kept counts if the pass was observed, and is dropped if not.
  void settle(const Pass& pass, bool is_observed, SampleSink& sink) noexcept;

  /// The device sleeps: gauges leave, counters stay where they are.
  void rest(SampleSink& sink) noexcept;

 private:
  void accept(const Pass& pass, double raw, SampleSink& sink) noexcept;
  Outcome refuse(Nanoseconds now, ReadStatus why, SampleSink& sink) noexcept;
  bool miss(Nanoseconds now, ReadStatus why, SampleSink& sink) noexcept;
  void miss_gauges(ReadStatus why, SampleSink& sink) noexcept;
  void miss_counters(ReadStatus why, SampleSink& sink) noexcept;

  struct Slots {
    std::size_t value = 0;
    std::optional<std::size_t> counter, max, min;
    std::optional<std::size_t> source;  // 1 from the first reading on
  } slots_;
  const RowFacts* row_ = nullptr;
  bool is_counter_ = false;      // the row's own family
  bool is_integrating_ = false;  // a counter is made of its readings, over observed time
  bool has_worked_ = false;      // this row, at any time
  bool has_succeeded_ = false;   // since the device was opened
  Integral integral_;
  HardwareCounter hardware_;
  std::unique_ptr<RollingExtremes> extremes_;
  std::optional<double> kept_;  // the reading of the pass that is under way, in the source's unit
  int failures_ = 0;            // passes in a row
  Nanoseconds failing_since_{0};
  Nanoseconds next_try_{0};  // of a source that never had a value
};

}  // namespace gpumeter
