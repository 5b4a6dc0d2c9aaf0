#include "collectors/simulated/model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/text.hpp"

namespace gpumeter::simulated {
namespace {

using Kind = Event::Kind;
// In the order of the kinds.
constexpr std::string_view kVerbs[] = {
    "hang",         "lose",        "reads",         "overheat",      "fan",        "throttle",   "brake",
    "slowdown",     "reliability", "clocks",        "xid",           "reset",      "recovery",   "ecc",
    "corrected",    "remap",       "remap-failure", "unrepairable",  "repair",     "retirement", "memory",
    "links",        "link-errors", "fabric",        "fabric-health", "pcie-width", "pcie-speed", "pcie-fatal",
    "pcie-replays", "hardware",    "ecc-mode",      "driver"};
static_assert(std::size(kVerbs) == static_cast<std::size_t>(Kind::driver) + 1);
constexpr int kMostXid = 9999;

struct Verb {
  Kind kind;
  int code;
};

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

bool has_form(std::span<const std::string_view> words) {
  return (words.size() == 4 || words.size() == 6) && words[2] == "after" &&
         (words.size() == 4 || words[4] == "for");
}

Result<int> parse_xid(std::string_view text) {
  const int code = parse_number<int>(text).value_or(0);
  if (code >= 1 && code <= kMostXid) return code;
  return Error("no XID " + quoted(text) + "; must be a number from 1 to 9999, such as xid:79");
}

Result<int> parse_action(std::string_view text) {
  const auto* const found = std::find(std::begin(kRecoveryActions), std::end(kRecoveryActions), text);
  if (found != std::end(kRecoveryActions)) return static_cast<int>(found - std::begin(kRecoveryActions));
  return Error("no recovery action " + quoted(text) +
               "; must be none, reset, reboot, drain_p2p or drain_and_reset, such as recovery:reset");
}

Result<Verb> parse_verb(std::string_view word) {
  std::string_view code = word;
  const std::string_view name = take_until(code, ':');
  const auto* const verb = std::ranges::find(kVerbs, name);
  const auto kind = static_cast<Kind>(verb - std::begin(kVerbs));
  const bool needs_code = kind == Kind::xid || kind == Kind::recovery;
  if (verb == std::end(kVerbs) || (!needs_code && name != word)) {
    return Error("unknown verb " + quoted(word) + "; must be one of " + std::string(kVerbList));
  }
  if (!needs_code) return Verb{kind, 0};
  const Result<int> number = kind == Kind::xid ? parse_xid(code) : parse_action(code);
  if (!number) return number.error();
  return Verb{kind, *number};
}

Result<int> parse_device(std::string_view word, int device_count) {
  const int device = parse_number<int>(word).value_or(-1);
  if (device >= 0 && device < device_count) return device;
  const std::string range = device_count == 1 ? "0" : "0 to " + std::to_string(device_count - 1);
  return Error("no device " + quoted(word) + "; must be " + range);
}

Result<Nanoseconds> parse_time(std::string_view word) {
  if (const auto time = parse_duration(word)) return Nanoseconds(*time);
  return Error(quoted(word) + " is not a duration; must be " + std::string(kDurationForm));
}

Result<Event> parse_words(std::span<const std::string_view> words, int device_count) {
  if (!has_form(words)) {
    return Error(
        "must be \"VERB DEVICE after TIME [for TIME]\", such as \"lose 0 after 30s for 10s\"; VERB is one "
        "of " +
        std::string(kVerbList));
  }
  const Result<Verb> verb = parse_verb(words[0]);
  if (!verb) return verb.error();
  const Result<int> device = parse_device(words[1], device_count);
  if (!device) return device.error();
  const Result<Nanoseconds> begin = parse_time(words[3]);
  if (!begin) return begin.error();
  if (words.size() == 4) return Event{verb->kind, *device, *begin, Nanoseconds::max(), verb->code};
  const Result<Nanoseconds> length = parse_time(words[5]);
  if (!length) return length.error();
  return Event{verb->kind, *device, *begin, *begin + *length, verb->code};
}

}  // namespace

Result<Event> parse_event(std::string_view text, int device_count) {
  Result<Event> event = parse_words(words_of(text), device_count);
  return event ? event : Result<Event>(event.error().with("event " + quoted(text)));
}

Timeline::Timeline(std::span<const Event> events, int device) {
  std::copy_if(events.begin(), events.end(), std::back_inserter(events_),
               [&](const Event& event) { return event.device == device; });
}

std::size_t Timeline::holding(Kind kind, Nanoseconds time) const noexcept {
  return begun(kind, time) - over(kind, time);
}

double Timeline::held_seconds(Kind kind, Nanoseconds time) const noexcept {
  double seconds = 0;
  for (const Event& event : events_) {
    if (event.kind == kind && event.begin <= time) {
      seconds += to_seconds(std::min(time, event.end) - event.begin);
    }
  }
  return seconds;
}

std::size_t Timeline::begun(Kind kind, Nanoseconds time) const noexcept {
  return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), [&](const Event& event) {
    return event.kind == kind && event.begin <= time;
  }));
}

std::size_t Timeline::over(Kind kind, Nanoseconds time) const noexcept {
  return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), [&](const Event& event) {
    return event.kind == kind && event.end <= time;
  }));
}

const Event* Timeline::last(Kind kind, Nanoseconds time, int code) const noexcept {
  const Event* last = nullptr;
  for (const Event& event : events_) {
    if (event.kind != kind || event.code != code || event.begin > time) continue;
    if (last == nullptr || event.begin >= last->begin) last = &event;
  }
  return last;
}

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
