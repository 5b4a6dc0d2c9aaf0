#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.hpp"

namespace gpumeter {

/// What the kernel's runtime power management says of a device (Documentation/power/runtime_pm.rst).
struct PowerState {
  bool suspended = false;    ///< asleep, or about to be: a read could wake it
  bool may_suspend = false;  ///< it falls asleep by itself once nobody uses it
  Nanoseconds delay{0};      ///< how long nobody must have used it for that
};

/// When a device that may fall asleep is read. Each read counts as a use for the kernel, so a device that is
/// read every second never sleeps. Where nothing has run for kQuiet, it is therefore left alone for as long
/// as it takes to fall asleep; what keeps it awake then (a screen, a program that holds it open) is not the
/// meter, and it is looked at once a minute. Asleep, it is never read. Pure arithmetic; one thread.
class SleepPolicy {
 public:
  static constexpr Nanoseconds kQuiet = std::chrono::seconds(10);
  /// On top of the autosuspend delay: the kernel's timer is coarse, and going to sleep takes a while.
  static constexpr Nanoseconds kSlack = std::chrono::seconds(2);
  static constexpr Nanoseconds kLookEvery = std::chrono::minutes(1);

  enum class Verdict : std::uint8_t {
    read,  ///< as usual
    look,  ///< one pass may read it, to see whether something runs
    rest,  ///< only what does not wake it
  };

  /// Whether a pass that begins may read the device. `now` is CLOCK_MONOTONIC.
  Verdict decide(Nanoseconds now, const PowerState& state) noexcept;

  /// Something runs on the device, as far as can be told: it is read as usual from now on.
  void stir(Nanoseconds now) noexcept;

  /// A `look` found nothing running.
  void looked(Nanoseconds now) noexcept;

 private:
  std::optional<Nanoseconds> stirred_at_;  // or first seen, or woken by others
  std::optional<Nanoseconds> look_at_;     // while it is left alone
  bool slept_ = false;
  Nanoseconds delay_{0};
};

}  // namespace gpumeter
