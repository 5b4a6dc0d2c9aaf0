#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

namespace gpumeter::tree {

/// Several counters of busy time that are read together. One thread.
class Growth {
 public:
  static constexpr std::size_t kMost = 64;  ///< later counters are not considered

  /// The largest growth since the last call, in the counters' unit; nullopt if there was none, or if no
  /// counter has a value. A counter that fell was reset, so its new value is its growth. `read(i)` returns
  /// counter i's value, or nullopt.
  template <class Read>
  std::optional<double> largest(std::size_t count, Read read) noexcept {
    std::optional<double> most;
    for (std::size_t i = 0; i < std::min(count, kMost); ++i) {
      const std::optional<double> value = read(i);
      if (value && last_[i])
        most = std::max(most.value_or(0), *value - (*value >= *last_[i] ? *last_[i] : 0));
      last_[i] = value;
    }
    return most;
  }

 private:
  std::array<std::optional<double>, kMost> last_{};
};

/// The sum of the largest growths, for CountingReader. After restart() the next reading starts the interval.
class BusiestTotal {
 public:
  void restart() noexcept { growth_ = Growth(); }

  template <class Read>
  double advance(std::size_t count, Read read) noexcept {
    total_ += growth_.largest(count, read).value_or(0);
    return total_;
  }

 private:
  Growth growth_;
  double total_ = 0;
};

/// The sum of the growths of counters that wrap at 32 bits, for CountingReader.
class WrappingTotal {
 public:
  void restart() noexcept { last_ = {}; }

  template <class Read>
  double advance(std::size_t count, Read read) noexcept {
    constexpr double kTwoTo32 = 4294967296.0;
    for (std::size_t i = 0; i < std::min(count, Growth::kMost); ++i) {
      const std::optional<double> value = read(i);
      if (value && last_[i]) total_ += *value - *last_[i] + (*value < *last_[i] ? kTwoTo32 : 0);
      last_[i] = value;
    }
    return total_;
  }

 private:
  std::array<std::optional<double>, Growth::kMost> last_{};
  double total_ = 0;
};

}  // namespace gpumeter::tree
