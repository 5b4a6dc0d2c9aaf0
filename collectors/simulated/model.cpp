#include "collectors/simulated/model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpumeter::simulated {
namespace {

constexpr Nanoseconds kDriverWindow = std::chrono::seconds(1);

// Core temperature at rest and under endless load, and the time constant between them.
constexpr double kRestCelsius = 38;
constexpr double kLoadCelsius = 72;
constexpr double kHeatLag = 4;  // s

// An overheating device settles this far over its slowdown limits, but below its shutdown limits.
constexpr double kOverSlowdown = 4;
constexpr double kOverheatLag = 1;  // s

// A device without fans settles here, below its slowdown limit.
constexpr double kFanlessCelsius = 78;

// Fans turn at kFanLeast percent up to kFanLeastCelsius, and at full speed from kFanFullCelsius.
constexpr double kFanLeast = 30;
constexpr double kFanLeastCelsius = 40;
constexpr double kFanFullCelsius = 90;

constexpr double kIdleMegahertz = 345;
constexpr double kThrottledMegahertz = 1200;

// splitmix64 (Sebastiano Vigna, public domain): the same seed and device give the same phase on every
// machine.
double scatter(std::uint64_t seed, std::uint64_t device) noexcept {
  std::uint64_t z = seed + (device + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1p-53;
}

double fraction(double x) noexcept { return x - std::floor(x); }

// First-order step response from 1 to 0 after `seconds`.
double decay(double seconds, double lag) noexcept { return std::exp(-seconds / lag); }

}  // namespace

Model::Model(const Workload& workload, std::uint64_t seed, int device, std::span<const Event> events)
    : workload_(workload),
      timeline_(events, device),
      phase_(scatter(seed, static_cast<std::uint64_t>(device))) {}

double Model::position(Nanoseconds time) const noexcept {
  return to_seconds(time) / to_seconds(workload_.period) + phase_;
}

bool Model::busy(Nanoseconds time) const noexcept { return fraction(position(time)) < workload_.duty; }

double Model::busy_seconds(Nanoseconds time) const noexcept {
  const auto busy_periods = [this](double x) {
    return std::floor(x) * workload_.duty + std::min(fraction(x), workload_.duty);
  };
  return to_seconds(workload_.period) * (busy_periods(position(time)) - busy_periods(phase_));
}

double Model::energy_joules(Nanoseconds time) const noexcept {
  return workload_.idle_watts * to_seconds(time) +
         (workload_.busy_watts - workload_.idle_watts) * busy_seconds(time);
}

double Model::utilization(Nanoseconds time) const noexcept {
  // The model assumes the same load before the opening, so the first window may reach back before it.
  const double busy_time = busy_seconds(time) - busy_seconds(time - kDriverWindow);
  return std::clamp(busy_time / to_seconds(kDriverWindow), 0.0, 1.0);
}

double Model::power_watts(Nanoseconds time) const noexcept {
  return std::lerp(workload_.idle_watts, workload_.busy_watts, utilization(time));
}

double Model::power_instant_watts(Nanoseconds time) const noexcept {
  return busy(time) ? workload_.busy_watts : workload_.idle_watts;
}

double Model::power_limit_watts() const noexcept { return std::ceil(workload_.busy_watts / 50) * 50; }

double Model::memory_used_gibibytes(Nanoseconds time) const noexcept {
  if (timeline_.holds(Event::Kind::memory, time)) return kMemoryGibibytes - kReservedGibibytes;
  const double step = std::fmod(std::floor(position(time)), 8);
  return 2 + 9 * step;
}

double Model::clock_megahertz(Nanoseconds time) const noexcept {
  if (!busy(time) || timeline_.holds(Event::Kind::clocks, time)) return kIdleMegahertz;
  return throttle_reasons(time) == 0 ? kClockMaxMegahertz : kThrottledMegahertz;
}

// The lagged square wave in its steady state, 0 to 1: each period starts at the value where the last one
// ended.
double Model::heat(Nanoseconds time) const noexcept {
  const double period = to_seconds(workload_.period);
  const double busy_end = period * workload_.duty;
  const double into_period = period * fraction(position(time));
  const double idle_share = decay(period - busy_end, kHeatLag);
  const double start = (1 - decay(busy_end, kHeatLag)) * idle_share / (1 - decay(period, kHeatLag));
  const double after_busy = 1 - (1 - start) * decay(std::min(into_period, busy_end), kHeatLag);
  return after_busy * decay(std::max(into_period - busy_end, 0.0), kHeatLag);
}

// 0: normal temperature. Rises towards 1 during an overheat event, and falls back after it.
double Model::overheating(Nanoseconds time) const noexcept {
  double most = 0;
  for (const Event& event : timeline_.events()) {
    if (event.kind != Event::Kind::overheat || time < event.begin) continue;
    const double rise = 1 - decay(to_seconds(std::min(time, event.end) - event.begin), kOverheatLag);
    const double after = to_seconds(std::max(time - event.end, Nanoseconds{0}));
    most = std::max(most, rise * decay(after, kOverheatLag));
  }
  return most;
}

double Model::temperature_celsius(Nanoseconds time, int sensor) const noexcept {
  const Sensor& facts = kSensors[sensor];
  const double core = timeline_.holds(Event::Kind::fan, time)
                          ? kFanlessCelsius
                          : std::lerp(kRestCelsius, kLoadCelsius, heat(time));
  const double normal = core + facts.above_core;
  return std::round(std::lerp(normal, facts.slowdown + kOverSlowdown, overheating(time)));
}

double Model::fan_percent(Nanoseconds time) const noexcept {
  if (timeline_.holds(Event::Kind::fan, time)) return 0;
  const double celsius = std::clamp(temperature_celsius(time, 0), kFanLeastCelsius, kFanFullCelsius);
  const double share = (celsius - kFanLeastCelsius) / (kFanFullCelsius - kFanLeastCelsius);
  return std::round(std::lerp(kFanLeast, 100.0, share));
}

unsigned Model::throttle_reasons(Nanoseconds time) const noexcept {
  constexpr std::pair<Event::Kind, Reason> kCauses[] = {{Event::Kind::throttle, kPowerCap},
                                                        {Event::Kind::overheat, kSoftwareThermal},
                                                        {Event::Kind::brake, kPowerBrake},
                                                        {Event::Kind::slowdown, kSlowdown},
                                                        {Event::Kind::reliability, kReliability}};
  unsigned reasons = 0;
  for (const auto& [event, reason] : kCauses) {
    if (timeline_.holds(event, time)) reasons |= reason;
  }
  if (temperature_celsius(time, 0) >= kSensors[0].slowdown) reasons |= kHardwareThermal;
  return reasons;
}

}  // namespace gpumeter::simulated
