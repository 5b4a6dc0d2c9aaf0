#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/records.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/jobs/wire/sender.hpp"
#include "collectors/jobs/wire/vocabulary.hpp"
#include "exporter/store/store.hpp"

/// The values of runs and their series. Only the model includes this file. Writer thread, and the owner
/// before that thread starts.
namespace gpumeter::jobs {

template <class Fields>
void fields(Fields& f, Moment& moment) {
  f.elapsed(moment.elapsed)(moment.unix);
}

template <class Fields>
void fields(Fields& f, SenderId& id) {
  f(id.uid, id.pid, id.start_time);
}

template <class Fields>
void fields(Fields& f, Workload& workload) {
  f.named(workload.kind, cgroup::kKindNames)(workload.name);
}

/// One series of a source. The destructor drops the series from the source, which must outlive this object.
/// Use from the source's thread only.
class OwnedSlot {
 public:
  OwnedSlot() = default;
  OwnedSlot(Source& source, const MetricDescriptor& family, Labels labels,
            SeriesPart part = SeriesPart::value, double since = 0)
      : source_(&source), slot_(source.add(family, std::move(labels), part, since)) {}
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
  void exemplify(Exemplar exemplar) const { source_->exemplify(slot_, std::move(exemplar)); }

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
  OwnedSlot add(const MetricDescriptor& family, Labels labels, SeriesPart part = SeriesPart::value,
                double since = 0) const {
    return OwnedSlot(*source_, family, std::move(labels), part, since);
  }
  OwnedSlot add(const MetricDescriptor& family) const { return add(family, labels_); }

 private:
  Source* source_;
  Labels labels_;
};

/// The values of one word with one choice of labels, and their series.
class Cell {
 public:
  /// `since`: Unix time in seconds at which the cell began to count.
  Cell(const Word& word, LabelChoice choice, const RunSeries& run, double since)
      : word_(&word), choice_(choice), since_(since) {
    const Labels labels = run.labels().with(labels_of(word, choice));
    const double start = can_be_summed(word) ? since : 0;
    if (word.times != nullptr) slots_.push_back(run.add(*word.times, labels, SeriesPart::value, start));
    const bool is_histogram = word.shape == Shape::histogram;
    if (is_histogram) add_buckets(run, labels);
    slots_.push_back(
        run.add(*word.family, labels, is_histogram ? SeriesPart::count : SeriesPart::value, start));
  }

  const Word& word() const noexcept { return *word_; }
  LabelChoice choice() const noexcept { return choice_; }
  /// The number of series that the quotas charge.
  std::size_t series() const noexcept { return series_of(*word_); }
  double since() const noexcept { return since_; }

  /// `value`: as the client sent it, in seconds if it is a duration. `weight`: the number of events that the
  /// value represents (1 / sampling rate). A gauge has no weight. `trace`, `now`: for an exemplar.
  void add(double value, double weight, const Trace& trace, const Moment& now) {
    if (word_->shape == Shape::gauge || word_->shape == Shape::size) {
      value_ = value;
      return;
    }
    value_ += value * weight;
    times_ += weight;
    if (buckets_.empty()) return;
    const auto bucket = static_cast<std::size_t>(std::ranges::lower_bound(word_->bounds.all, value) -
                                                 word_->bounds.all.begin());
    buckets_[bucket] += weight;
    if (trace.trace_id.empty()) return;
    slots_[bucket].exemplify(
        {value, to_seconds(now.unix), std::string(trace.trace_id), std::string(trace.span_id)});
  }

  /// Sets the value of a Shape::memory; nullopt removes its series from the page.
  void hold(std::optional<double> value) noexcept {
    is_held_ = value.has_value();
    value_ = value.value_or(0);
  }

  /// Adds the values of a cell of the same word and labels. Not for a gauge.
  void absorb(const Cell& other) noexcept {
    value_ += other.value_;
    times_ += other.times_;
    std::ranges::transform(buckets_, other.buckets_, buckets_.begin(), std::plus<>());
  }

  void show() const noexcept {
    auto slot = slots_.begin();
    if (word_->times != nullptr) (slot++)->show(times_);
    double cumulative = 0;
    for (const double bucket : buckets_) (slot++)->show(cumulative += bucket);
    (slot++)->show(is_held_ ? std::optional(value_) : std::nullopt);
    if (!buckets_.empty()) slot->show(cumulative);
  }

  template <class Fields>
  friend void fields(Fields& f, Cell& cell) {
    f(cell.value_, cell.times_);
    for (double& bucket : cell.buckets_) f(bucket);
  }

 private:
  void add_buckets(const RunSeries& run, const Labels& labels) {
    const Bounds& bounds = word_->bounds;
    buckets_.resize(bounds.all.size() + 1);
    const auto add_bucket = [&](const std::string& bound, bool is_classic) {
      slots_.push_back(run.add(*word_->family, labels.with({{"le", bound}}),
                               is_classic ? SeriesPart::bucket : SeriesPart::fine_bucket));
    };
    for (std::size_t i = 0; i < bounds.all.size(); ++i)
      add_bucket(bound_text(bounds.all[i]), bounds.is_classic(i));
    add_bucket("+Inf", true);
    slots_.push_back(run.add(*word_->family, labels, SeriesPart::sum));
  }

  const Word* word_;
  LabelChoice choice_;
  double since_;
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

  Cell* find(const Word& word, LabelChoice choice) noexcept {
    const auto found = std::ranges::find_if(
        cells_, [&](const Cell& cell) { return &cell.word() == &word && cell.choice() == choice; });
    return found == cells_.end() ? nullptr : &*found;
  }
  Cell& add(const Word& word, LabelChoice choice, double since) {
    return cells_.emplace_back(word, choice, run_, since);
  }
  const std::vector<Cell>& all() const noexcept { return cells_; }
  std::vector<Cell>& all() noexcept { return cells_; }

  CustomScalar* find_custom(std::string_view metric) noexcept {
    const auto found = std::ranges::find(customs_, metric, &CustomScalar::metric);
    return found == customs_.end() ? nullptr : &*found;
  }
  void add_custom(const std::string& metric, double value) {
    const Labels labels = run_.labels().with({{"metric", metric}});
    customs_.push_back({metric, value, run_.add(catalog::ml_custom, labels)});
  }
  std::size_t customs() const noexcept { return customs_.size(); }

  void show() const noexcept {
    for (const Cell& cell : cells_) cell.show();
    for (const CustomScalar& custom : customs_) custom.slot.show(custom.value);
  }
  /// The number of series that the quotas charge.
  std::size_t series() const noexcept {
    std::size_t series = customs_.size();
    for (const Cell& cell : cells_) series += cell.series();
    return series;
  }
  void clear() {
    cells_.clear();
    customs_.clear();
  }

  /// One line for each cell and custom metric.
  void save(RecordWriter& out) const {
    for (const Cell& cell : cells_) {
      out.begin("cell")(cell.word().name, cell.choice()[0], cell.choice()[1], cell.since(), cell);
    }
    for (const CustomScalar& custom : customs_) out.begin("custom")(custom.metric, custom.value);
  }
  void restore_cell(RecordReader& in) {
    const Word* const word = find_word(in.take<std::string>());
    LabelChoice choice{};
    for (std::size_t i = 0; i < choice.size(); ++i) {
      in(choice[i]);
      const ClosedLabel* const label = word != nullptr ? word->labels[i] : nullptr;
      const std::size_t values = label != nullptr ? label->values.size() : 0;
      in.check(choice[i] == kNoLabel || choice[i] < values);
    }
    in.check(word != nullptr && word->family != nullptr);
    const auto since = in.take<double>();
    if (in.failed() || find(*word, choice) != nullptr) return in.fail();
    in(add(*word, choice, since));
  }
  void restore_custom(RecordReader& in) {
    const std::string metric = in.take<std::string>();
    add_custom(metric, in.take<double>());
  }

 private:
  RunSeries run_;
  std::vector<Cell> cells_;
  std::vector<CustomScalar> customs_;
};

/// Returns whether lower values of the metric are better, unless the job reports otherwise. They are if the
/// last word of the name is loss, perplexity, error, wer, cer, rmse, mse or mae, or if the last two are
/// error_rate.
inline bool lower_is_usual(std::string_view metric) {
  constexpr std::string_view kWords[] = {"loss", "perplexity", "error", "wer", "cer", "rmse", "mse", "mae"};
  constexpr std::string_view kRate = "rate";
  std::string name(metric);
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  std::string_view rest = name;
  const auto last_word = [&] { return rest.substr(rest.find_last_of("_-./: ") + 1); };  // npos + 1 is 0
  if (last_word() != kRate) return std::ranges::find(kWords, last_word()) != std::end(kWords);
  rest.remove_suffix(std::min(kRate.size() + 1, rest.size()));
  return last_word() == "error";
}

/// The number of series of each evaluation.
inline constexpr std::size_t kSeriesOfEvaluation = 4;

/// One evaluated metric of a run: its last and best value, its target, and the time at which it first met the
/// target.
class Evaluation {
 public:
  Evaluation(std::string metric, const RunSeries& run)
      : metric_(std::move(metric)), lower_is_better_(lower_is_usual(metric_)) {
    const Labels labels = run.labels().with({{"metric", metric_}});
    slots_ = {run.add(catalog::ml_eval_value, labels), run.add(catalog::ml_eval_best_value, labels),
              run.add(catalog::ml_target_value, labels), run.add(catalog::ml_time_to_solution, labels)};
  }

  const std::string& metric() const noexcept { return metric_; }

  /// Overrides the direction that lower_is_usual() derives from the name.
  void set_direction(bool lower_is_better) noexcept {
    if (lower_is_better == lower_is_better_) return;
    lower_is_better_ = lower_is_better;
    seen_.best = seen_.value;  // the old best value was chosen by the other direction
    seen_.solved.reset();
    judge();
  }

  void set_target(double target) noexcept {
    if (seen_.target == target) return;
    seen_.target = target;
    seen_.solved.reset();
    judge();
  }

  void evaluated(double value, const Moment& now) noexcept {
    seen_.value = value;
    if (!seen_.first) seen_.first = value;
    if (seen_.best && reaches(*seen_.best, value)) return;
    seen_.best = value;
    seen_.best_time = now;
    judge();
  }

  /// The run started again under the same name.
  void forget() noexcept { seen_ = {}; }

  /// `is_late`: the run's first message arrived long after its start. If the first evaluation then meets the
  /// target, an earlier one may have met it too. The time to solution is unknown in that case and omitted.
  void show(const Moment& start, bool is_late) const noexcept {
    slots_[0].show(seen_.value);
    slots_[1].show(seen_.best);
    slots_[2].show(seen_.target);
    slots_[3].show(time_to_solution(start, is_late));
  }

  template <class Fields>
  friend void fields(Fields& f, Evaluation& each) {
    Seen& seen = each.seen_;
    f(each.lower_is_better_, seen.first, seen.value, seen.best, seen.target, seen.best_time, seen.solved);
  }

 private:
  struct Seen {
    std::optional<double> first, value, best, target;
    Moment best_time;              ///< of the first evaluation that gave `best`
    std::optional<Moment> solved;  ///< of the first evaluation that met `target`
  };

  bool reaches(double value, double goal) const noexcept {
    return lower_is_better_ ? value <= goal : value >= goal;
  }

  /// A target that arrives after the evaluations is compared with the best of them.
  void judge() noexcept {
    if (!seen_.solved && seen_.best && seen_.target && reaches(*seen_.best, *seen_.target)) {
      seen_.solved = seen_.best_time;
    }
  }

  /// If the evaluation is older than the start, it belongs to another run or the start was missed. The time
  /// is then unknown too.
  std::optional<double> time_to_solution(const Moment& start, bool is_late) const noexcept {
    if (!seen_.solved || seen_.solved->elapsed < start.elapsed) return std::nullopt;
    if (is_late && reaches(*seen_.first, *seen_.target)) return std::nullopt;
    return seconds_between(start, *seen_.solved);
  }

  std::string metric_;
  bool lower_is_better_;
  Seen seen_;
  std::array<OwnedSlot, kSeriesOfEvaluation> slots_;  ///< value, best, target, time to solution
};

}  // namespace gpumeter::jobs
