#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace gpumeter::simulated {

/// An event of one simulated device. Times are relative to the opening of the collector.
struct Event {
  enum class Kind : std::uint8_t {
    hang,           ///< calls to the driver do not return
    lose,           ///< the device falls off the bus
    reads,          ///< every read fails
    overheat,       ///< temperatures rise over their limits, and the device throttles
    fan,            ///< the fans stand still, and the device gets hot
    throttle,       ///< the power cap lowers the clocks
    brake,          ///< the machine's power brake lowers the clocks
    slowdown,       ///< the hardware lowers the clocks
    reliability,    ///< the board's reliability limit lowers the clocks
    clocks,         ///< the clocks stay low, and no cause is reported
    xid,            ///< the driver reports the XID `code` once, at the beginning
    reset,          ///< the driver resets the device once, at the beginning
    recovery,       ///< the driver requests the recovery action `code`
    ecc,            ///< an uncorrected memory error, until a reset at the end
    corrected,      ///< ten corrected memory errors a second
    remap,          ///< a memory row waits for a reset to be remapped
    remap_failure,  ///< a memory row cannot be remapped
    unrepairable,   ///< the memory has errors that cannot be repaired
    repair,         ///< a memory channel waits for a reset to be repaired
    retirement,     ///< a memory page waits for a reset to be retired
    memory,         ///< the memory is full
    links,          ///< half of the links to other devices are down
    link_errors,    ///< one replay a second on the links to other devices
    fabric,         ///< the registration with the fabric manager has failed
    fabric_health,  ///< the fabric is unhealthy
    pcie_width,     ///< the PCIe link has half of its lanes
    pcie_speed,     ///< the PCIe link stays at generation 1
    pcie_fatal,     ///< a fatal PCIe error, at the beginning
    pcie_replays,   ///< one PCIe packet a second is sent again
    hardware,       ///< an uncorrected error of a block other than memory, until a reset at the end
    ecc_mode,       ///< ECC is disabled
    driver,         ///< the driver has another version than that of the other devices
  };
  Kind kind;
  int device;
  Nanoseconds begin;
  Nanoseconds end;  ///< Nanoseconds::max(): the event never ends
  int code = 0;     ///< of `xid`: the XID; of `recovery`: index in kRecoveryActions
};

inline constexpr std::string_view kRecoveryActions[] = {"none", "reset", "reboot", "drain_p2p",
                                                        "drain_and_reset"};

inline constexpr std::string_view kEventsHelp =
    "Simulated failures: \"VERB DEVICE after TIME [for TIME]\". VERB is one of hang, lose, reads, overheat, "
    "fan, throttle, "
    "brake, slowdown, reliability, clocks, xid:CODE, reset, recovery:ACTION, ecc, corrected, remap, "
    "remap-failure, "
    "unrepairable, repair, retirement, memory, links, link-errors, fabric, fabric-health, pcie-width, "
    "pcie-speed, "
    "pcie-fatal, pcie-replays, hardware, ecc-mode, driver.";
/// All verbs, separated by commas.
inline constexpr std::string_view kVerbList =
    kEventsHelp.substr(kEventsHelp.find("hang"), kEventsHelp.size() - 1 - kEventsHelp.find("hang"));

/// Parses `VERB DEVICE after TIME [for TIME]`: "lose 0 after 30s for 10s", "xid:79 0 after 10s". Without
/// `for` the event never ends. The verbs are the names of the kinds with `-` for `_`; `xid` and `recovery`
/// have a code. Devices count from 0 to `device_count` - 1. The Error names the text and the correct form.
Result<Event> parse_event(std::string_view text, int device_count);

/// The events of one device. Immutable, any thread. Times are relative to the opening of the collector.
class Timeline {
 public:
  Timeline(std::span<const Event> events, int device);

  bool holds(Event::Kind kind, Nanoseconds time) const noexcept { return holding(kind, time) > 0; }

  /// How many events of the kind have begun (begun()) or ended (over()).
  std::size_t begun(Event::Kind kind, Nanoseconds time) const noexcept;
  std::size_t over(Event::Kind kind, Nanoseconds time) const noexcept;

  /// How many events of the kind hold, and the seconds for which events of the kind have held so far.
  std::size_t holding(Event::Kind kind, Nanoseconds time) const noexcept;
  double held_seconds(Event::Kind kind, Nanoseconds time) const noexcept;

  /// The last event of the kind that has begun and has this code; nullptr if none has.
  const Event* last(Event::Kind kind, Nanoseconds time, int code = 0) const noexcept;

  std::span<const Event> events() const noexcept { return events_; }

 private:
  std::vector<Event> events_;
};

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
