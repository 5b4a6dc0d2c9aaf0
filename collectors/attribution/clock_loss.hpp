#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpumeter::workloads {

/// The time that a throttled device lost to its clock. At half of the maximum clock, two throttled seconds
/// lose one. The time of a pass counts with the clock at its end. Causes that hold at the same time count
/// once: the cause with the longest time stands for all of them, so the result is a lower bound. One thread,
/// the device's lane.
class ClockLoss {
 public:
  using Throttled = std::pair<std::string, double>;  ///< cause and its counter, in seconds

  /// After each pass. `clock`, `most`: the current and the maximum frequency of the same clock, in hertz. A
  /// pass without them counts nothing.
  void pass(std::span<const Throttled> throttled, std::optional<double> clock, std::optional<double> most);

  /// The time until the next pass is not counted.
  void interrupt() noexcept { last_.clear(); }

  /// Grows. nullopt: no pass had counters and both frequencies.
  std::optional<double> seconds() const noexcept { return seconds_; }

 private:
  std::vector<Throttled> last_;
  std::optional<double> seconds_;
};

}  // namespace gpumeter::workloads
