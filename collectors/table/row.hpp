#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/api/series.hpp"
#include "collectors/table/derived.hpp"

namespace gpumeter {

/// Reads one value of one device. A row's source returns it at attach. It owns its sources or refers to the
/// device's context, which outlives it. Lane thread.
class Reader {
 public:
  /// The device has no such source.
  Reader() = default;

  /// `read` returns the value in the source's unit. If `read` also has settle(bool), it counts by itself over
  /// observed time: see settle().
  template <class Read>
    requires std::same_as<std::invoke_result_t<Read&>, Sample>
  Reader(Read read)  // NOLINT(google-explicit-constructor): a function that binds returns a lambda
      : body_(new Body<Read>{{&kCalls<Read>}, std::move(read)}) {}

  explicit operator bool() const noexcept { return body_ != nullptr; }

  /// Each pass. May block in the driver; allocates nothing.
  Sample operator()() noexcept { return body_->calls->read(*body_); }

  /// True if settle() must be called at the end of each pass, whether the value was read or not.
  bool settles() const noexcept { return body_->calls->settle != nullptr; }

  /// The pass has ended. The count of the pass is kept if the pass was observed. Otherwise the count is
  /// dropped, and Pass::elapsed of the next pass includes this pass's time or is zero.
  void settle(bool is_observed) noexcept {
    if (settles()) body_->calls->settle(*body_, is_observed);
  }

 private:
  struct Base;

  /// The functions of one type of reader. Virtual functions would do the same, but there are 180 types: their
  /// names, tables and destructors take 70 kB.
  struct Calls {
    Sample (*read)(Base&) noexcept;
    void (*settle)(Base&, bool is_observed) noexcept;  ///< null: the reader does not count by itself
    void (*destroy)(Base*) noexcept;
  };
  struct Base {
    const Calls* calls;
  };
  template <class Read>
  struct Body : Base {
    Read call;
  };
  struct Destroy {
    void operator()(Base* body) const noexcept { body->calls->destroy(body); }
  };

  template <class Read>
  static Sample read_by(Base& body) noexcept {
    return static_cast<Body<Read>&>(body).call();
  }
  template <class Read>
  static void settle_by(Base& body, bool is_observed) noexcept {
    static_cast<Body<Read>&>(body).call.settle(is_observed);
  }
  template <class Read>
  static void destroy_by(Base* body) noexcept {
    delete static_cast<Body<Read>*>(body);
  }
  /// For all types whose destructor does nothing.
  static void release(Base* body) noexcept { ::operator delete(body); }

  template <class Read>
  static constexpr Calls calls_of() noexcept {
    Calls calls{read_by<Read>, nullptr, release};
    if constexpr (requires(Read& read) { read.settle(true); }) calls.settle = settle_by<Read>;
    constexpr bool kIsPlain =
        std::is_trivially_destructible_v<Read> && alignof(Body<Read>) <= alignof(std::max_align_t);
    if constexpr (!kIsPlain) calls.destroy = destroy_by<Read>;
    return calls;
  }
  template <class Read>
  static constexpr Calls kCalls = calls_of<Read>();

  std::unique_ptr<Base, Destroy> body_;
};

/// Returns the same value each time: a fact found at attach.
inline Reader constant(double value) {
  return [value] { return Sample::of(value); };
}

/// A reader's own count over observed time, as of the last observed pass and as of the pass under way. T is
/// copyable and has restart(), after which the next reading starts the counting.
template <class T>
class Settled {
 public:
  Settled() = default;
  explicit Settled(T initial) : settled_(std::move(initial)) {}

  /// The count for this pass. A change is kept only if the pass is observed.
  T& current() noexcept {
    if (!std::exchange(is_current_, true)) current_ = settled_;
    return current_;
  }

  /// An observed pass without current() is a gap of this count alone.
  void settle(bool is_observed) noexcept {
    const bool was_read = std::exchange(is_current_, false);
    if (!is_observed) return;
    if (was_read) settled_ = current_;
    if (!was_read) settled_.restart();
  }

 private:
  T settled_{};
  T current_{};
  bool is_current_ = false;
};

/// One counter's growth from pass to pass.
class Growth {
 public:
  /// Returns zero for the first reading and after a reset.
  double of(double raw) noexcept {
    const double last = std::exchange(last_, raw);
    return std::exchange(has_last_, true) && raw > last ? raw - last : 0;
  }
  void restart() noexcept { has_last_ = false; }

 private:
  double last_ = 0;
  bool has_last_ = false;
};

/// A counter that a reader computes from its own readings in each pass.
struct Tally {
  double total = 0;
  std::array<Growth, 2> growth{};  ///< of the counters behind this one

  Sample add(double amount) noexcept { return Sample::of(total += amount); }
  void restart() noexcept {
    for (Growth& each : growth) each.restart();
  }
};

/// A reader that keeps its own count: `read` takes the Settled count and returns the total.
template <class T, class Read>
class CountingReader {
 public:
  CountingReader(T initial, Read read) : count_(std::move(initial)), read_(std::move(read)) {}
  Sample operator()() noexcept { return read_(count_); }
  void settle(bool is_observed) noexcept { count_.settle(is_observed); }

 private:
  Settled<T> count_;
  Read read_;
};

/// A LabelSet in a row of a table: 56 bytes instead of 96, because the tables have 1500 rows. The texts are
/// not copied.
class PackedLabels {
 public:
  /// Longest name or value, in bytes. A table with a longer one does not compile; at run time it is cut.
  static constexpr std::size_t kLongestText = std::numeric_limits<std::uint8_t>::max();

  constexpr PackedLabels() = default;
  constexpr PackedLabels(const LabelSet& labels) {  // NOLINT(google-explicit-constructor): the same labels
    for (std::size_t i = 0; i < kPairs; ++i) {
      pack(2 * i, labels.pairs[i].name);
      pack(2 * i + 1, labels.pairs[i].value);
    }
  }

  constexpr LabelSet unpacked() const noexcept {
    LabelSet labels;
    for (std::size_t i = 0; i < kPairs; ++i) labels.pairs[i] = {text(2 * i), text(2 * i + 1)};
    return labels;
  }

  constexpr bool operator==(const PackedLabels& other) const noexcept {
    return unpacked() == other.unpacked();
  }

 private:
  static constexpr std::size_t kPairs = std::tuple_size_v<decltype(LabelSet::pairs)>;

  constexpr std::string_view text(std::size_t i) const noexcept { return {texts_[i], sizes_[i]}; }
  constexpr void pack(std::size_t i, std::string_view text) {
    if (std::is_constant_evaluated() && text.size() > kLongestText) throw text;
    texts_[i] = text.data();
    sizes_[i] = static_cast<std::uint8_t>(std::min(text.size(), kLongestText));
  }

  // Names and values in turn.
  std::array<const char*, 2 * kPairs> texts_{};
  std::array<std::uint8_t, 2 * kPairs> sizes_{};
};

/// Raw units to base units.
inline constexpr double kPercent = 1e-2;
inline constexpr double kMilli = 1e-3;
inline constexpr double kMicro = 1e-6;
inline constexpr double kKibi = 1024;
inline constexpr double kMebi = 1024 * 1024;
inline constexpr double kMega = 1e6;

/// A source: a file, a call or a field by name (shown in the docs). Some sources also need a number (a bit
/// mask, an index).
struct ReadSource {
  std::string_view name;
  std::uint64_t argument = 0;
};

/// The source of a row's value on a device with that Context: the function that binds it, and what the
/// function needs to know.
template <class Context>
struct RowSource {
  /// Called at attach: returns the reader, or none if this device has no such source.
  using Bind = Reader (*)(Context&, const ReadSource&);

  constexpr RowSource() = default;
  /// `argument`: a whole number, or the value of an enum.
  template <class Argument = std::uint64_t>
  constexpr RowSource(Bind how, std::string_view name, Argument argument = {}) noexcept
      : bind(how), read{name, static_cast<std::uint64_t>(argument)} {}

  Bind bind = nullptr;
  ReadSource read{};
};

/// Families of the highest and the lowest value of the last minute.
struct Extremes {
  const MetricDescriptor* max;
  const MetricDescriptor* min;
};
inline constexpr Extremes kUtilizationExtremes{&catalog::utilization_max, &catalog::utilization_min};
inline constexpr Extremes kPowerExtremes{&catalog::power_max, &catalog::power_min};

/// Series that a row's gauge feeds in addition to its own: a counter by integration, extremes of the last
/// minute.
struct Derived {
  const MetricDescriptor* counter = nullptr;
  const Extremes* extremes = nullptr;
  Integration how = Integration::none;

  constexpr Derived with(const Extremes& of) const { return {counter, &of, how}; }
  constexpr Derived with(const Extremes&&) const = delete;
  constexpr const MetricDescriptor* max() const noexcept {
    return extremes == nullptr ? nullptr : extremes->max;
  }
  constexpr const MetricDescriptor* min() const noexcept {
    return extremes == nullptr ? nullptr : extremes->min;
  }
};
constexpr Derived averaged(const MetricDescriptor& counter) {
  return {&counter, nullptr, Integration::averaged};
}
constexpr Derived instantaneous(const MetricDescriptor& counter) {
  return {&counter, nullptr, Integration::instantaneous};
}
constexpr Derived state(const MetricDescriptor& counter) { return {&counter, nullptr, Integration::state}; }

/// Properties observed on real hardware. A value outside [min, max], in base units, is a failed read. Rows
/// refer to constants, because many rows have the same.
struct Traits {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool zero_is_unknown = false;    ///< the driver reports 0 if it does not know the value
  bool wakes = true;               ///< reading it wakes a sleeping device, so the row is skipped during sleep
  std::uint8_t counter_bits = 64;  ///< width at which a hardware counter wraps: 32 or 64
  bool forgets = false;  ///< the source misses events while it cannot be read: a counter is omitted from its
                         ///< first failed read on; `unsupported` is not an error and may end soon
  std::string_view counted_by = "hardware";  ///< origin of a row that is a counter, for gpu_meter_source_info
};
inline constexpr Traits kUsual{};
inline constexpr Traits kRatio{.min = 0, .max = 1};
inline constexpr Traits kPositive{.min = 0};
inline constexpr Traits kZeroIsUnknown{.zero_is_unknown = true};
inline constexpr Traits kNeverWakes{.wakes = false};

/// One metric, independent of a vendor's source. A table has up to 400 rows, so each byte counts.
struct RowFacts {
  const MetricDescriptor* family = nullptr;
  PackedLabels labels{};
  double scale = 0;  ///< source's unit -> base unit
  Derived derived{};
  const Traits* traits = &kUsual;
  Tier tier{};

  constexpr bool same_series(const RowFacts& other) const noexcept {
    return family == other.family && labels == other.labels;
  }
};

/// One metric of one vendor. If several rows have the same family and labels, the first whose source binds on
/// a device is read. A fallback is therefore a row below its preferred one.
template <class Context>
struct MetricRow : RowFacts {
  RowSource<Context> source{};

  constexpr MetricRow() = default;
  constexpr MetricRow(const MetricDescriptor* of_family, LabelSet with_labels, RowSource<Context> from,
                      double by_scale, Tier in_tier, Derived and_derived = {},
                      const Traits& with_traits = kUsual)
      : RowFacts{of_family, with_labels, by_scale, and_derived, &with_traits, in_tier}, source(from) {}
  /// The row keeps the address: traits are a constant with a name.
  constexpr MetricRow(const MetricDescriptor* of_family, LabelSet with_labels, RowSource<Context> from,
                      double by_scale, Tier in_tier, Derived and_derived,
                      const Traits&& with_traits) = delete;
};

constexpr bool valid_facts(const RowFacts& row) noexcept {
  const bool scale_ok = row.scale > 0 && row.scale < std::numeric_limits<double>::infinity();
  const bool counter_ok =
      (row.derived.how == Integration::none) == (row.derived.counter == nullptr) &&
      (row.derived.counter == nullptr ||
       (row.family->type == MetricType::gauge && row.derived.counter->type == MetricType::counter));
  const bool extremes_ok = (row.derived.max() == nullptr) == (row.derived.min() == nullptr);
  const Traits& traits = *row.traits;
  const bool traits_ok = traits.min < traits.max && !traits.counted_by.empty() &&
                         (traits.counter_bits == 32 || traits.counter_bits == 64);
  return row.family != nullptr && scale_ok && counter_ok && extremes_ok && traits_ok;
}

/// For a static_assert next to the table.
template <class Rows>
constexpr bool valid_table(const Rows& rows) noexcept {
  for (const auto& row : rows) {
    if (!valid_facts(row) || row.source.bind == nullptr || row.source.read.name.empty()) return false;
  }
  return true;
}

template <class Context>
constexpr RowDoc doc_of(const MetricRow<Context>& row) noexcept {
  return {row.family,          row.labels.unpacked(), row.source.read.name, row.tier,
          row.derived.counter, row.derived.max(),     row.derived.min()};
}

// Tables are built from rows at compile time.

/// Makes one row per value, for families that repeat the same shape.
template <class Value, std::size_t N, class MakeRow>
constexpr auto each(const Value (&values)[N], MakeRow make_row) {
  std::array<std::invoke_result_t<MakeRow, const Value&>, N> rows{};
  std::transform(std::begin(values), std::end(values), rows.begin(), make_row);
  return rows;
}

/// Like each(), for rows that also need the value's place in the list.
template <class Value, std::size_t N, class MakeRow>
constexpr auto each_place(const Value (&values)[N], MakeRow make_row) {
  std::array<std::invoke_result_t<MakeRow, std::size_t, const Value&>, N> rows{};
  for (std::size_t place = 0; place < N; ++place) rows[place] = make_row(place, values[place]);
  return rows;
}

/// Concatenates tables.
template <class First, class... Others>
constexpr auto joined(const First& first, const Others&... others) {
  constexpr auto kSize = (std::tuple_size_v<First> + ... + std::tuple_size_v<Others>);
  std::array<typename First::value_type, kSize> all{};
  auto next = std::copy(first.begin(), first.end(), all.begin());
  ((next = std::copy(others.begin(), others.end(), next)), ...);
  return all;
}

/// Tables in the form used by the docs. Built on request, because the docs are as large as the tables and
/// only printed.
template <class Context>
std::vector<RowDoc> row_docs(std::initializer_list<std::span<const MetricRow<Context>>> tables) {
  std::vector<RowDoc> docs;
  for (const std::span<const MetricRow<Context>> rows : tables) {
    for (const MetricRow<Context>& row : rows) docs.push_back(doc_of(row));
  }
  return docs;
}

}  // namespace gpumeter
