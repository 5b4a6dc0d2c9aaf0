#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/records.hpp"
#include "collectors/jobs/wire/sender.hpp"
#include "collectors/jobs/wire/vocabulary.hpp"
#include "exporter/store/store.hpp"

/// Reads and writes the parts of the runs' section of the state file. Writer thread, and the owner before
/// that thread starts.
namespace gpumeter::jobs {

/// Reads the state of an earlier process. Times of an earlier boot are moved to this boot's CLOCK_BOOTTIME.
class SavedReader : public RecordReader {
 public:
  using RecordReader::RecordReader;

  void set_shift(Nanoseconds shift) noexcept { shift_ = shift; }

  Nanoseconds elapsed() { return time() + shift_; }
  Moment moment() {
    Moment moment;
    moment.elapsed = elapsed();
    moment.unix = time();
    return moment;
  }
  std::optional<Moment> optional_moment() { return flag() ? std::optional(moment()) : std::nullopt; }
  double finite() {
    const double value = number();
    if (!std::isfinite(value)) fail();
    return value;
  }
  std::optional<double> optional_finite() {
    const std::optional<double> value = optional_number();
    if (value && !std::isfinite(*value)) fail();
    return value;
  }
  SenderId sender_id() {
    SenderId id;
    id.uid = static_cast<std::uint32_t>(integer(0, UINT32_MAX));
    id.pid = static_cast<std::int32_t>(integer(INT32_MIN, INT32_MAX));
    id.start_time = static_cast<std::uint64_t>(integer(0, INT64_MAX));
    return id;
  }
  Workload workload() {
    const auto kind = cgroup::kKindNames.find(text());
    if (!kind) fail();
    Workload workload;
    workload.kind = kind.value_or(cgroup::Kind::unattributed);
    workload.name = text();
    return workload;
  }
  std::size_t count() { return static_cast<std::size_t>(integer(0, UINT32_MAX)); }

 private:
  Nanoseconds shift_{};
};

inline void save(RecordWriter& out, const Moment& moment) { out.time(moment.elapsed).time(moment.unix); }
inline void save(RecordWriter& out, const std::optional<Moment>& moment) {
  out.flag(moment.has_value());
  if (moment) save(out, *moment);
}
inline void save(RecordWriter& out, const SenderId& id) {
  out.integer(id.uid).integer(id.pid).integer(static_cast<std::int64_t>(id.start_time));
}
inline void save(RecordWriter& out, const Workload& workload) {
  out.text(cgroup::to_string(workload.kind)).text(workload.name);
}

/// One series of a source. The destructor drops the series from the source, which must outlive this object.
/// Use from the source's thread only.
class OwnedSlot {
 public:
  OwnedSlot() = default;
  OwnedSlot(Source& source, const MetricDescriptor& family, Labels labels,
            SeriesPart part = SeriesPart::value)
      : source_(&source), slot_(source.add(family, std::move(labels), part)) {}
  ~OwnedSlot() {
    if (source_ != nullptr) source_->drop(slot_);
  }
  OwnedSlot(OwnedSlot&& other) noexcept
      : source_(std::exchange(other.source_, nullptr)), slot_(other.slot_) {}
  OwnedSlot& operator=(OwnedSlot&& other) noexcept {
    std::swap(source_, other.source_);
    std::swap(slot_, other.slot_);
    return *this;
  }

  /// Takes effect at the next commit; nullopt removes the series from the page.
  void show(std::optional<double> value) const noexcept {
    value ? source_->set(slot_, *value) : source_->miss(slot_, ReadStatus::unsupported);
  }

 private:
  Source* source_ = nullptr;  ///< nullptr: no series, as after a move
  Source::Slot slot_ = 0;
};

/// Creates the series of one run; all have the labels `run` and `user`.
class RunSeries {
 public:
  RunSeries(Source& source, std::string_view run, std::string_view user)
      : source_(&source), labels_({{"run", std::string(run)}, {"user", std::string(user)}}) {}

  const Labels& labels() const noexcept { return labels_; }
  OwnedSlot add(const MetricDescriptor& family, Labels labels, SeriesPart part = SeriesPart::value) const {
    return OwnedSlot(*source_, family, std::move(labels), part);
  }
  OwnedSlot add(const MetricDescriptor& family) const { return add(family, labels_); }

 private:
  Source* source_;
  Labels labels_;
};

/// The values of one word with one choice of labels, and their series.
class Cell {
 public:
  Cell(const Word& word, LabelChoice choice, const RunSeries& run);

  bool is(const Word& word, LabelChoice choice) const noexcept { return word_ == &word && choice_ == choice; }
  /// `value`: as the client sent it, in seconds if it is a duration. `weight`: the number of events that the
  /// value represents (1 / sampling rate). A gauge has no weight.
  void add(double value, double weight) noexcept;
  /// Sets the value of a Shape::memory; nullopt removes its series from the page.
  void hold(std::optional<double> value) noexcept;
  /// Adds the values of a cell of the same word and labels. Not for a gauge.
  void absorb(const Cell& other) noexcept;
  const Word& word() const noexcept { return *word_; }
  LabelChoice choice() const noexcept { return choice_; }
  void show() const noexcept;
  /// The number of series that the quotas charge.
  std::size_t series() const noexcept { return slots_.size(); }
  void save(RecordWriter& out) const;
  void restore(SavedReader& in);

 private:
  const Word* word_;
  LabelChoice choice_;
  double value_ = 0;              ///< count, last value, or sum of the durations
  bool is_held_ = true;           ///< false: no process of the run has the value any more
  double times_ = 0;              ///< durations
  std::vector<double> buckets_;   ///< not cumulative; only of a histogram
  std::vector<OwnedSlot> slots_;  ///< times and value, or buckets, sum and count
};

/// The last value of a metric outside the vocabulary.
struct CustomScalar {
  std::string metric;
  double value;
  OwnedSlot slot;
};

/// The cells of a run. The closed sets limit them to 52, so a linear search is fastest.
class Cells {
 public:
  explicit Cells(RunSeries run) : run_(std::move(run)) {}

  Cell* find(const Word& word, LabelChoice choice) noexcept;
  Cell& add(const Word& word, LabelChoice choice) { return cells_.emplace_back(word, choice, run_); }
  void show() const noexcept;
  /// The number of series that the quotas charge.
  std::size_t series() const noexcept;
  const std::vector<Cell>& all() const noexcept { return cells_; }
  std::vector<Cell>& all() noexcept { return cells_; }
  void clear();

  CustomScalar* find_custom(std::string_view metric) noexcept;
  void add_custom(const std::string& metric, double value);
  std::size_t customs() const noexcept { return customs_.size(); }

  /// One line for each cell and custom metric.
  void save(RecordWriter& out) const;
  void restore_cell(SavedReader& in);
  void restore_custom(SavedReader& in);

 private:
  RunSeries run_;
  std::vector<Cell> cells_;
  std::vector<CustomScalar> customs_;
};

/// One evaluated metric of a run: its last and best value, its target, and the time at which it first met the
/// target.
class Evaluation {
 public:
  Evaluation(std::string metric, const RunSeries& run);

  const std::string& metric() const noexcept { return metric_; }
  /// Overrides the direction that lower_is_usual() derives from the name.
  void set_direction(bool lower_is_better) noexcept;
  void set_target(double target) noexcept;
  void evaluated(double value, const Moment& now) noexcept;
  /// The run started again under the same name.
  void forget() noexcept { seen_ = {}; }
  /// `is_late`: the run's first message arrived long after its start. If the first evaluation then meets the
  /// target, an earlier one may have met it too. The time to solution is unknown in that case and omitted.
  void show(const Moment& start, bool is_late) const noexcept;
  /// The line that restore() reads, whose first field is the metric, for the constructor.
  void save(RecordWriter& out) const;
  void restore(SavedReader& in);

 private:
  struct Seen {
    std::optional<double> first, value, best, target;
    Moment best_time;              ///< of the first evaluation that gave `best`
    std::optional<Moment> solved;  ///< of the first evaluation that met `target`
  };

  bool reaches(double value, double goal) const noexcept {
    return lower_is_better_ ? value <= goal : value >= goal;
  }
  void judge() noexcept;
  std::optional<double> time_to_solution(const Moment& start, bool is_late) const noexcept;

  std::string metric_;
  bool lower_is_better_;
  Seen seen_;
  std::array<OwnedSlot, 4> slots_;  ///< value, best, target, time to solution
};

/// The number of series of each evaluation.
inline constexpr std::size_t kSeriesOfEvaluation = 4;

/// Returns whether lower values of the metric are better, unless the job reports otherwise. They are if the
/// last word of the name is loss, perplexity, error, wer, cer, rmse, mse or mae, or if the last two are
/// error_rate. Any thread.
bool lower_is_usual(std::string_view metric);

}  // namespace gpumeter::jobs
