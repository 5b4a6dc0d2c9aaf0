#pragma once

#include <array>
#include <optional>

#include "collectors/api/collector.hpp"

namespace gpumeter {

/// The time over which a device's integrals are complete, by tier. A gap (a pass that came later than its
/// deadline, a suspend, a loss) is not bridged: it is simply not observed. One thread.
class ObservedTime {
 public:
  /// A pass starts: the time since the tier's last one, or zero where that is not to be bridged.
  /// `longest` is what a gap must exceed: the tier's interval and its deadline.
  Nanoseconds begin(Tier tier, const Clock& clock, Nanoseconds longest) noexcept;

  /// The pass that began is complete, and its integrals have taken in `elapsed`.
  void complete(Tier tier, Nanoseconds elapsed) noexcept { total_[index(tier)] += elapsed; }

  /// Nothing was observed up to the next pass: the device is lost or sleeps.
  void interrupt(Tier tier) noexcept { last_[index(tier)].reset(); }
  void interrupt_all() noexcept { last_ = {}; }

  Nanoseconds total(Tier tier) const noexcept { return total_[index(tier)]; }

 private:
  static constexpr std::size_t index(Tier tier) noexcept { return static_cast<std::size_t>(tier); }
  struct Moment {
    Nanoseconds monotonic;
    Nanoseconds suspended;  // boottime - monotonic: grows only while the machine sleeps
  };
  std::array<std::optional<Moment>, kTiers.size()> last_{};
  std::array<Nanoseconds, kTiers.size()> total_{};
};

}  // namespace gpumeter
