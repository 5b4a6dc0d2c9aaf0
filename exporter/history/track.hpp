#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace gpumeter {

/// A quantity that the history keeps.
struct Column {
  std::string_view name;  ///< as in the JSON, with the base unit
  double scale = 1;       ///< base units for each stored unit; 16 bits hold 6e-8 to 65504 stored units
};

/// The quantities of a GPU, in the order of kGpuColumns. They are those that the page draws.
enum class Quantity : std::uint8_t {
  utilization,
  compute_active,
  power,
  power_limit,
  memory_used,
  temperature,
  margin,
  clock,
  throttled_power,
  throttled_thermal,
  throttled_hardware,
};

inline constexpr std::array kGpuColumns = {
    Column{"utilization_ratio"},
    Column{"compute_active_ratio"},
    Column{"power_watts"},
    Column{"power_limit_watts"},
    Column{"memory_used_bytes", 1024.0 * 1024 * 1024},
    Column{"temperature_celsius"},         // sensor="core"
    Column{"temperature_margin_celsius"},  // of the sensor that is nearest to its limit
    Column{"clock_hertz", 1e6},            // clock="graphics", or "sm" if there is none
    Column{"throttled_power_ratio"},       // 0 or 1 at a moment, the share of the time in a mean
    Column{"throttled_thermal_ratio"},
    Column{"throttled_hardware_ratio"},  // causes hardware, current and reliability
};
inline constexpr std::size_t kGpuColumnCount = kGpuColumns.size();
static_assert(static_cast<std::size_t>(Quantity::throttled_hardware) + 1 == kGpuColumnCount);

constexpr std::size_t index_of(Quantity quantity) noexcept { return static_cast<std::size_t>(quantity); }

/// The quantities of a run.
inline constexpr std::array kRunColumns = {
    Column{"steps_per_second"},  // over the last 30 s
    Column{"loss"},              // split="train", or the first one if there is none
};
inline constexpr std::size_t kRunColumnCount = kRunColumns.size();

/// A number of 16 bits, as IEEE 754's binary16: 11 significant bits (an error of 0.05 % at the most), values
/// up to 65504. Larger ones become 65504; NaN stands for an absent value.
class Half {
 public:
  constexpr Half() noexcept = default;
  constexpr explicit Half(float value) noexcept : bits_(bits_of(std::bit_cast<std::uint32_t>(value))) {}
  constexpr explicit operator float() const noexcept {
    const std::uint32_t sign = (bits_ & kSign) << 16;
    const std::uint32_t exponent = bits_ & kExponent;
    const std::uint32_t magnitude = bits_ & ~kSign;
    if (exponent == kExponent) return std::bit_cast<float>(kFloatNaN);
    const float value = exponent == 0 ? static_cast<float>(magnitude) * kSmallest
                                      : std::bit_cast<float>((magnitude << 13) + kRebias);
    return sign != 0 ? -value : value;
  }

 private:
  static constexpr std::uint32_t kSign = 0x8000, kExponent = 0x7C00, kNaN = 0x7E00, kLargest = 0x7BFF;
  static constexpr std::uint32_t kFloatInfinity = 0x7F800000, kFloatNaN = 0x7FC00000;
  static constexpr std::uint32_t kRebias = (127 - 15) << 23;       // between the exponents of both formats
  static constexpr std::uint32_t kFloatNormal = (127 - 14) << 23;  // the smallest normal number of 16 bits
  static constexpr std::uint32_t kFloatLargest = 0x477FE000;       // 65504
  static constexpr float kSmallest = 1.0F / static_cast<float>(1 << 24);

  static constexpr std::uint16_t bits_of(std::uint32_t value) noexcept {
    const std::uint32_t sign = (value >> 16) & kSign;
    const std::uint32_t magnitude = value & 0x7FFFFFFF;
    if (magnitude > kFloatInfinity) return static_cast<std::uint16_t>(kNaN);
    if (magnitude >= kFloatLargest) return static_cast<std::uint16_t>(sign | kLargest);
    if (magnitude < kFloatNormal) {
      const float steps = std::bit_cast<float>(magnitude) / kSmallest + 0.5F;
      return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(steps));
    }
    // Rounds to the nearest number, and to the even one of two that are as near.
    const std::uint32_t rounded = magnitude - kRebias + 0xFFF + ((magnitude >> 13) & 1);
    return static_cast<std::uint16_t>(sign | (rounded >> 13));
  }

  std::uint16_t bits_ = static_cast<std::uint16_t>(kNaN);
};

/// The two lengths of the history: 5 minutes at 1 s, or 6 hours at 15 s.
enum class Range : std::uint8_t { minutes, hours };

constexpr std::int64_t step_of(Range range) noexcept { return range == Range::minutes ? 1 : 15; }
constexpr std::int64_t slots_of(Range range) noexcept {
  return range == Range::minutes ? 5 * 60 : 6 * 60 * 4;
}

/// A copy of a part of the history. NaN: no value was recorded in the slot.
struct Stretch {
  struct Values {
    std::string_view name;
    std::vector<float> min = {};  ///< of Range::hours only, as `max`
    std::vector<float> mean = {};
    std::vector<float> max = {};
  };

  std::int64_t first_second = 0;  ///< start of the first slot
  std::int64_t step = 1;          ///< seconds
  std::size_t length = 0;         ///< slots; all vectors have this length
  std::vector<Values> columns = {};
};

/// The history of one GPU or run: a ring of 300 slots of a second with the last value of each column, and one
/// of 1440 slots of 15 s with minimum, mean and maximum. The second ring grows by parts of 15 minutes as it
/// fills. Seconds count from any start, the same for all calls. The last slots of both rings hold what was
/// added so far. Not for several threads.
template <class Cell>
class Track {
 public:
  /// The columns must outlive the track.
  explicit Track(std::span<const Column> columns) : columns_(columns), totals_(columns.size()) {}

  /// Records one value for each column; NaN: no value. Seconds never decrease.
  void add(std::int64_t second, std::span<const double> values) {
    add_minutes(second, values);
    add_hours(second, values);
    last_ = second;
  }

  /// Copies the slots of the range up to that of `now`, without the empty ones before the first.
  Stretch read(Range range, std::int64_t now) const {
    const std::int64_t end = now / step_of(range) + 1;
    std::int64_t begin = std::max<std::int64_t>(end - slots_of(range), 0);
    while (begin < end && find(range, begin).empty()) ++begin;
    Stretch stretch{begin * step_of(range), step_of(range), static_cast<std::size_t>(end - begin)};
    for (std::size_t i = 0; i < columns_.size(); ++i) stretch.columns.push_back(column(range, i, begin, end));
    return stretch;
  }

  /// Copies one column of the last five minutes.
  std::vector<float> minutes(std::size_t column_index, std::int64_t now) const {
    return column(Range::minutes, column_index, now + 1 - slots_of(Range::minutes), now + 1).mean;
  }

  /// The second of the last add().
  std::optional<std::int64_t> last() const noexcept { return last_; }

  /// The memory that a track of so many columns takes at the most, once it has seen 6 hours.
  static constexpr std::size_t most_bytes(std::size_t columns) noexcept {
    constexpr std::size_t kMinutes = slots_of(Range::minutes), kHours = slots_of(Range::hours);
    return sizeof(Track) + (kMinutes + kHours) * sizeof(std::uint32_t) + columns * sizeof(Total) +
           (kMinutes + kHours * 3) * columns * sizeof(Cell);
  }

 private:
  static constexpr std::int64_t kPartSlots = 60;
  static constexpr std::size_t kParts = slots_of(Range::hours) / kPartSlots;

  /// Slots of a ring. A slot holds values if its stamp is its number; the ring is never cleared.
  struct Part {
    Part(std::size_t slots, std::size_t cells_each) : stamps(slots), cells(slots * cells_each) {}
    std::vector<std::uint32_t> stamps;  // slot + 1, because 0 is a slot
    std::vector<Cell> cells;
  };
  struct Total {
    double sum = 0, min = 0, max = 0;
    std::uint32_t count = 0;
  };

  void add_minutes(std::int64_t second, std::span<const double> values) {
    if (minutes_ == nullptr) minutes_ = std::make_unique<Part>(slots_of(Range::minutes), columns_.size());
    const auto place = static_cast<std::size_t>(second % slots_of(Range::minutes));
    minutes_->stamps[place] = stamp(second);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      minutes_->cells[place * columns_.size() + i] = stored(values[i], i);
    }
  }

  void add_hours(std::int64_t second, std::span<const double> values) {
    const std::int64_t slot = second / step_of(Range::hours);
    if (!last_ || *last_ / step_of(Range::hours) != slot) std::ranges::fill(totals_, Total{});
    const std::int64_t place = slot % slots_of(Range::hours);
    std::unique_ptr<Part>& part = hours_[static_cast<std::size_t>(place / kPartSlots)];
    if (part == nullptr) part = std::make_unique<Part>(kPartSlots, columns_.size() * 3);
    const auto within = static_cast<std::size_t>(place % kPartSlots);
    part->stamps[within] = stamp(slot);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      Cell* cells = &part->cells[(within * columns_.size() + i) * 3];
      add_to(totals_[i], values[i]);
      const Total& total = totals_[i];
      if (total.count == 0) {
        std::fill_n(cells, 3, stored(kNone, i));
        continue;
      }
      cells[0] = stored(total.min, i);
      cells[1] = stored(total.sum / total.count, i);
      cells[2] = stored(total.max, i);
    }
  }

  static void add_to(Total& total, double value) noexcept {
    if (std::isnan(value)) return;
    total.min = total.count == 0 ? value : std::min(total.min, value);
    total.max = total.count == 0 ? value : std::max(total.max, value);
    total.sum += value;
    ++total.count;
  }

  /// The cells of a slot; empty if nothing was recorded in it.
  std::span<const Cell> find(Range range, std::int64_t slot) const noexcept {
    if (slot < 0) return {};
    const bool is_fine = range == Range::minutes;
    const std::int64_t place = slot % slots_of(range);
    const Part* part = is_fine ? minutes_.get() : hours_[static_cast<std::size_t>(place / kPartSlots)].get();
    const auto within = static_cast<std::size_t>(is_fine ? place : place % kPartSlots);
    if (part == nullptr || part->stamps[within] != stamp(slot)) return {};
    const std::size_t each = columns_.size() * (is_fine ? 1 : 3);
    return std::span(part->cells).subspan(within * each, each);
  }

  typename Stretch::Values column(Range range, std::size_t index, std::int64_t begin,
                                  std::int64_t end) const {
    typename Stretch::Values values{columns_[index].name};
    for (std::int64_t slot = begin; slot < end; ++slot) {
      const std::span<const Cell> cells = find(range, slot);
      if (range == Range::minutes) {
        values.mean.push_back(cells.empty() ? kNoFloat : shown(cells[index], index));
        continue;
      }
      values.min.push_back(cells.empty() ? kNoFloat : shown(cells[index * 3], index));
      values.mean.push_back(cells.empty() ? kNoFloat : shown(cells[index * 3 + 1], index));
      values.max.push_back(cells.empty() ? kNoFloat : shown(cells[index * 3 + 2], index));
    }
    return values;
  }

  Cell stored(double value, std::size_t index) const noexcept {
    return Cell(static_cast<float>(value / columns_[index].scale));
  }
  float shown(Cell cell, std::size_t index) const noexcept {
    return static_cast<float>(static_cast<double>(static_cast<float>(cell)) * columns_[index].scale);
  }
  static constexpr std::uint32_t stamp(std::int64_t slot) noexcept {
    return static_cast<std::uint32_t>(slot + 1);
  }

  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  static constexpr float kNoFloat = std::numeric_limits<float>::quiet_NaN();

  std::span<const Column> columns_;
  std::optional<std::int64_t> last_;
  std::unique_ptr<Part> minutes_;
  std::array<std::unique_ptr<Part>, kParts> hours_;
  std::vector<Total> totals_;  // of the last slot of 15 s
};

}  // namespace gpumeter
