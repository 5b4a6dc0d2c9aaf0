#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/clock.hpp"
#include "collectors/simulated/event.hpp"

namespace gpumeter::simulated {

/// The load of the devices: busy for `duty` of each `period`, idle otherwise.
struct Workload {
  Nanoseconds period{7'300'000'000};
  double duty = 0.37;  ///< 0 to 1
  double idle_watts = 90;
  double busy_watts = 420;
};

/// The physics of one device: pure functions of the time since the collector was opened. Any thread.
///
/// The truth for counters is exact over whole periods, whatever events there are:
///   mean utilisation = duty
///   mean power       = idle_watts + (busy_watts - idle_watts) * duty
/// Events change neither the utilisation nor the power.
class Model {
 public:
  /// The seed and the device's number determine the phase, so that devices do not change load together.
  Model(const Workload& workload, std::uint64_t seed, int device, std::span<const Event> events);

  /// The exact integral from the opening until `time`.
  double busy_seconds(Nanoseconds time) const noexcept;
  double energy_joules(Nanoseconds time) const noexcept;

  /// The values that a driver would report: exact means over the second before `time`.
  double utilization(Nanoseconds time) const noexcept;
  double power_watts(Nanoseconds time) const noexcept;

  bool busy(Nanoseconds time) const noexcept;
  double power_instant_watts(Nanoseconds time) const noexcept;
  /// The power cap: the busy power, rounded up to 50 W.
  double power_limit_watts() const noexcept;

  /// VRAM used by the load. It grows with each period and starts again after eight.
  double memory_used_gibibytes(Nanoseconds time) const noexcept;
  static constexpr int kMemoryGibibytes = 80;
  static constexpr int kReservedGibibytes = 1;

  double clock_megahertz(Nanoseconds time) const noexcept;
  static constexpr int kClockMaxMegahertz = 1980;

  /// Temperatures are whole degrees, as sensors report them. They follow the load with a first-order lag.
  struct Sensor {
    std::string_view name;
    int above_core;  ///< K, at rest
    int slowdown;    ///< limits, in degrees Celsius
    int shutdown;
  };
  static constexpr Sensor kSensors[] = {
      {"core", 0, 90, 96}, {"hotspot", 10, 100, 106}, {"memory", 6, 95, 101}};
  double temperature_celsius(Nanoseconds time, int sensor) const noexcept;

  /// In whole percent; follows the core's temperature.
  double fan_percent(Nanoseconds time) const noexcept;

  /// Bits of the active throttle reasons.
  enum Reason : unsigned {
    kPowerCap = 1,
    kSoftwareThermal = 2,
    kHardwareThermal = 4,
    kPowerBrake = 8,
    kSlowdown = 16,
    kReliability = 32
  };
  unsigned throttle_reasons(Nanoseconds time) const noexcept;

  const Timeline& timeline() const noexcept { return timeline_; }

 private:
  double position(Nanoseconds time) const noexcept;
  double heat(Nanoseconds time) const noexcept;
  double overheating(Nanoseconds time) const noexcept;

  Workload workload_;
  Timeline timeline_;
  double phase_;  // 0 to 1, in periods
};

}  // namespace gpumeter::simulated
