#pragma once

#include <array>
#include <optional>

#include "collectors/api/collector.hpp"

namespace gpumeter {

/// The time over which a device's integrals are complete, by tier. The next complete pass covers an
/// incomplete one. A longer gap is not bridged and counts as not observed: a pass later than its deadline, a
/// suspend, or a loss. One thread.
class ObservedTime {
 public:
  /// Starts a pass. Returns the time since the tier's last complete pass, or zero if the gap cannot be
  /// bridged. A gap longer than `longest` (the tier's interval plus its deadline) is not bridged.
  Nanoseconds begin(Tier tier, const Clock& clock, Nanoseconds longest) noexcept;

  /// Ends the pass that began as complete; its integrals include `elapsed`.
  void complete(Tier tier, Nanoseconds elapsed) noexcept {
    last_[index(tier)] = begun_[index(tier)];
    total_[index(tier)] += elapsed;
  }

  /// Discards the time up to the next pass: the device is lost or sleeps.
  void interrupt(Tier tier) noexcept { last_[index(tier)].reset(); }
  void interrupt_all() noexcept { last_ = {}; }

  /// Continues from the time, in seconds, that an earlier process observed.
  void resume(Tier tier, double total) noexcept;

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
