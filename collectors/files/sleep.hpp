#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "collectors/sources/sysfs.hpp"

/// The sleep of a device: its state in the kernel's runtime power management, what keeps it awake, and when
/// it may be read.
namespace gpumeter::files {

/// A device's state in the kernel's runtime power management (Documentation/power/runtime_pm.rst).
struct PowerState {
  bool suspended = false;    ///< asleep, or about to be: a read could wake it
  bool may_suspend = false;  ///< the kernel suspends it when unused
  Nanoseconds delay{0};      ///< how long it must be unused before that
};

/// Decides when a device that may fall asleep is read. The kernel counts each read as a use, so a device that
/// is read every second never sleeps. After kQuiet without work the device is therefore not read for as long
/// as it needs to fall asleep. If it stays awake (a screen, a program that holds it open), one pass a minute
/// reads it. A sleeping device is never read. Pure arithmetic; one thread.
class SleepPolicy {
 public:
  static constexpr Nanoseconds kQuiet = std::chrono::seconds(10);
  /// Added to the autosuspend delay: the kernel's timer is coarse, and suspending takes a while.
  static constexpr Nanoseconds kSlack = std::chrono::seconds(2);
  static constexpr Nanoseconds kLookEvery = std::chrono::minutes(1);

  enum class Verdict : std::uint8_t {
    read,  ///< as usual
    look,  ///< one pass may read it, to find out whether something runs
    rest,  ///< only files whose reading does not wake it
  };

  /// Decides whether the pass that begins may read the device. `now` is CLOCK_MONOTONIC.
  Verdict decide(Nanoseconds now, const PowerState& state) noexcept;

  /// Whether the pass that begins may read the device. `is_used()` and `is_busy()` look for work, the latter
  /// by reading the device. Only a pass that `looks` asks them, and the next passes use its result.
  template <class IsUsed, class IsBusy>
  bool may_read(Nanoseconds now, const PowerState& state, bool looks, IsUsed is_used, IsBusy is_busy) {
    looks = looks && state.may_suspend;
    if (looks && is_used()) stir(now);
    const Verdict verdict = decide(now, state);
    if (verdict == Verdict::rest) return false;
    if (looks && is_busy()) {
      stir(now);
    } else if (verdict == Verdict::look) {
      if (looks) looked(now);
      return looks;
    }
    return true;
  }

  /// Reports a sign of work on the device: from now on it is read as usual.
  void stir(Nanoseconds now) noexcept;

  /// Reports that a `look` found nothing running.
  void looked(Nanoseconds now) noexcept;

 private:
  std::optional<Nanoseconds> stirred_at_;  // or first seen, or woken by another program
  std::optional<Nanoseconds> look_at_;     // set while it is not read
  bool slept_ = false;
  Nanoseconds delay_{0};
};

/// The `power` folder of a device, kept open. Reading it does not wake the device. Lane thread.
class RuntimePower {
 public:
  RuntimePower() = default;
  /// `device` is its folder in sysfs. On a kernel without runtime power management the files do not exist;
  /// devices then never sleep.
  explicit RuntimePower(const std::string& device);

  /// nullopt: the device was removed.
  std::optional<PowerState> read() noexcept;

 private:
  sysfs::File status_;
  sysfs::File control_;
  sysfs::File delay_;
};

/// The screens of a card, by the DPMS state of each connector. The kernel keeps the states in memory, so
/// reading them does not wake the card. A screen that is on keeps its card awake. Lane thread.
class Screens {
 public:
  Screens() = default;
  /// `card_folder`: the folder of the PCI function.
  explicit Screens(const std::string& card_folder);

  bool any_on() const noexcept;

 private:
  std::vector<sysfs::File> dpms_;
};

}  // namespace gpumeter::files
