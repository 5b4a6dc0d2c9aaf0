#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/table/derived.hpp"
#include "collectors/table/row.hpp"

/// The rows of a table on one device: the series that they become, the state of each, and a pass over them.
namespace gpumeter {

/// Collects the series of a device while its rows are bound.
class SeriesPlan {
 public:
  /// Later additions belong to this slice of the device. Adds its gpu_partition_info.
  void begin_partition(const Partition& partition);

  /// True if the series is already planned.
  bool has(const MetricDescriptor& family, const LabelSet& labels) const;

  /// Returns the slot of the new series, or nullopt if the series is already planned. The first source of a
  /// quantity is used, so a hardware counter stands above the row that would integrate the same quantity.
  std::optional<std::size_t> add(const MetricDescriptor& family, const LabelSet& labels);

  /// A series that is 1 while the device is attached.
  void add_constant(SeriesSpec series);

  /// Series with labels of their own, whose values the context sets. Returns the slot of the first.
  std::size_t add(std::vector<SeriesSpec> series);

  /// The slot of the counter's gpu_meter_source_info, one per quantity. `source` is "hardware", "integrated"
  /// or the row's own word.
  std::size_t add_source(const MetricDescriptor& counter, std::string_view source);

  /// Ends the plan.
  std::vector<SeriesSpec> take() { return std::move(series_); }

  /// Slots of series that are 1 while the device is attached.
  const std::vector<std::size_t>& constants() const noexcept { return constants_; }

 private:
  using Place = std::pair<const MetricDescriptor*, std::string>;  // of a partition; empty: the whole device
  std::vector<SeriesSpec> series_;
  std::map<Place, std::vector<LabelSet>> planned_;
  std::map<std::string, std::size_t> sources_;  // by quantity
  std::vector<std::size_t> constants_;
  std::string partition_;
};

/// State of the rows of one series on one device: slots, integral and failures. It outlives a loss of the
/// device, so that counters continue. Lane thread.
class alignas(64) RowState {
 public:
  /// The result of take().
  enum class Outcome : std::uint8_t {
    good,
    idle,    ///< no value, as expected: the source never had one, or has none now
    failed,  ///< the read failed
    gap,     ///< the read failed, and the value feeds a counter: the pass cannot be observed
  };

  /// Reserves the slots of `row`, which must have static storage. Rows of one series share a state; if a
  /// device returns with another source, its counter continues without a jump. `settles`: the row's reader
  /// counts by itself (Reader::settles). Returns false if the series is already planned.
  bool plan(const RowFacts& row, bool settles, SeriesPlan& plan);

  /// The slot of the row's counter if gpumeter counts it: by integration, or by a reader that counts from
  /// this process's start. nullopt: the row has no counter, or the hardware keeps it.
  std::optional<std::size_t> own_counter() const noexcept;
  /// Continues that counter from the total of an earlier process.
  void resume(double total) noexcept;

  /// The device was opened; its sources have not been read yet.
  void attach() noexcept;

  /// False while a row whose source never had a value waits for its next try.
  bool due(Nanoseconds now) const noexcept { return has_worked_ || now >= next_try_; }

  /// Handles a finished read; `raw` is in the source's unit. A reading that feeds a counter over observed
  /// time is kept until settle().
  Outcome take(const Pass& pass, Sample raw, SampleSink& sink) noexcept;

  /// True if settle() must be called at the end of each pass.
  bool integrates() const noexcept { return is_integrating_; }

  /// The pass has ended. The reading kept by take() counts if the pass was observed, otherwise it is dropped.
  /// `elapsed`: Pass::elapsed in seconds.
  void settle(double elapsed, bool is_observed, SampleSink& sink) noexcept;

  /// The device sleeps: gauges are omitted, counters keep their value.
  void rest(SampleSink& sink) noexcept;

 private:
  Outcome refuse(const Pass& pass, Sample raw, SampleSink& sink) noexcept;
  bool miss(Nanoseconds now, ReadStatus why, SampleSink& sink) noexcept;
  void miss_gauges(ReadStatus why, SampleSink& sink) noexcept;
  void miss_counters(ReadStatus why, SampleSink& sink) noexcept;
  void take_count(double raw, SampleSink& sink) noexcept;
  void count(double raw, SampleSink& sink) noexcept;
  void extend(Nanoseconds now, double value, SampleSink& sink) noexcept;

  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static std::uint32_t number_of(std::optional<std::size_t> slot) noexcept {
    return slot ? static_cast<std::uint32_t>(*slot) : kNone;
  }

  // In the order of their use: a good reading of a gauge, integrated or not, touches only the first cache
  // line. A pass over 8 cards has 500 states.
  const Traits* traits_ = nullptr;  // of row_
  Scale scale_ = 1;
  double kept_ = 0;  // the reading of the pass that is under way: of a counter in the source's unit,
                     // otherwise in the base unit
  Integral integral_;
  std::uint32_t value_ = 0;  // slots
  std::uint32_t counter_ = kNone;
  std::uint32_t source_ = kNone;  // 1 from the first reading on
  std::uint8_t failures_ = 0;     // consecutive failed passes, up to kCounterFailures
  Integration how_{};             // of row_
  bool is_counter_ = false;       // the row's own family
  bool is_integrating_ = false;   // its readings feed a counter, over observed time
  bool has_worked_ = false;       // this row, at any time
  bool has_succeeded_ = false;    // since the device was opened
  bool has_kept_ = false;
  bool has_extremes_ = false;

  const RowFacts* row_ = nullptr;
  std::unique_ptr<RollingExtremes> extremes_;
  std::uint32_t max_ = kNone;  // slots
  std::uint32_t min_ = kNone;
  HardwareCounter hardware_;
  Nanoseconds failing_since_{0};
  Nanoseconds next_try_{0};  // of a source that never had a value
};

// A pass over a table makes these calls for each row, and nearly all reads are good.

inline RowState::Outcome RowState::take(const Pass& pass, Sample raw, SampleSink& sink) noexcept {
  has_kept_ = false;
  const bool is_known = raw.status == ReadStatus::ok && (!traits_->zero_is_unknown || raw.value != 0);
  if (!is_known) return refuse(pass, raw, sink);
  const double value = scale_(raw.value);
  const bool is_in_range = value >= traits_->min && value <= traits_->max;  // false for NaN too
  if (!is_in_range) return refuse(pass, raw, sink);
  failures_ = 0;
  has_succeeded_ = has_worked_ = true;
  if (source_ != kNone) sink.set(source_, 1);
  if (is_counter_) {
    take_count(raw.value, sink);
  } else {
    kept_ = value;
    has_kept_ = is_integrating_;
    sink.set(value_, value);
  }
  if (has_extremes_) extend(pass.now, value, sink);
  return Outcome::good;
}

inline void RowState::settle(double elapsed, bool is_observed, SampleSink& sink) noexcept {
  if (!std::exchange(has_kept_, false) || !is_observed) return;
  if (is_counter_) return count(kept_, sink);
  integral_.advance(how_, kept_, elapsed);
  sink.set(counter_, integral_.total());
}

/// The rows of one tier that are bound on a device, in the table's order. It is the same for all vendors: a
/// pass over many rows takes most of its own time here. Lane thread.
class BoundRows {
 public:
  void clear() noexcept;
  /// `row` must have static storage, and `state` must outlive its binding.
  void add(const RowFacts& row, RowState& state, Reader read);

  // A pass: begin(), then sample() until it returns true, then settle().

  /// Forgets how the reads of the last pass ended.
  void begin() noexcept { seen_ = {}; }
  /// False between passes, and while a pass has not read its first row.
  bool is_under_way() const noexcept { return cursor_ != 0; }
  /// Reads the rows into the sink. `is_asleep`: rows that would wake the device are omitted. Returns false if
  /// the pass yielded; the next call continues it.
  bool sample(const Pass& pass, bool is_asleep, SampleSink& sink) noexcept;
  /// How a pass over an awake device ended.
  PassOutcome outcome() const noexcept;
  /// The pass has ended. Counters advance together or not at all, so that each is complete over the observed
  /// time.
  void settle(const Pass& pass, bool is_observed, SampleSink& sink) noexcept;

  /// Adds the slots of counters that gpumeter counts.
  void list_own_counters(std::vector<std::size_t>& slots) const;
  /// Continues the counter of that slot from the total of an earlier process. False: it is of another tier.
  bool resume(std::size_t slot, double total) noexcept;

 private:
  struct Bound {
    RowState* state;
    Reader read;
    bool wakes;  // the row's trait: a pass looks at it for each row
  };

  /// Bit 1 << RowState::Outcome of each read of a pass. A row that does not wake the device is read without
  /// it, so its success does not prove that the device answers: `awake` omits such rows.
  struct Seen {
    unsigned all = 0;
    unsigned awake = 0;
  };
  void sample_row(const Pass& pass, Bound& row, SampleSink& sink, Seen& seen) noexcept;

  std::vector<Bound> rows_;
  std::vector<RowState*> integrating_;
  std::vector<std::size_t> counting_;  // places in rows_ of readers that count by themselves
  std::size_t cursor_ = 0;             // of a pass that is under way
  Seen seen_;
};

}  // namespace gpumeter
