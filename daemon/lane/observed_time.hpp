#pragma once

#include <array>
#include <optional>

#include "collectors/api/collector.hpp"

namespace gpumeter {

/// The time over which a device's integrals are complete, by tier. A pass that is not complete is made up for
/// by the next one that is. A longer gap (a pass that came later than its deadline, a suspend, a loss) is not
/// bridged: it is simply not observed. One thread.
class ObservedTime {
 public:
  /// A pass starts: the time since the tier's last complete one, or zero where that is not to be bridged.
  /// `longest` is what a gap must exceed: the tier's interval and its deadline.
  Nanoseconds begin(Tier tier, const Clock& clock, Nanoseconds longest) noexcept;

  /// The pass that began is complete, and its integrals have taken in `elapsed`.
  void complete(Tier tier, Nanoseconds elapsed) noexcept {
    last_[index(tier)] = begun_[index(tier)];
    total_[index(tier)] += elapsed;
  }

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
  std::array<Moment, kTiers.size()> begun_{};
  std::array<std::optional<Moment>, kTiers.size()> last_{};  // the last complete pass
  std::array<Nanoseconds, kTiers.size()> total_{};
};

}  // namespace gpumeter
