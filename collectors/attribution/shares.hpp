#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

// How a device is divided among those who use it: by which measure, over which time, and which of its power
// is idle.

namespace gpumeter::workloads {

/// The use of a device by a process, or by a workload with all of its processes. A value that the driver does
/// not report is 0.
struct Claim {
  double busy_seconds = 0;  ///< or of the whole device, if it is divided
  double memory_bytes = 0;
  std::size_t processes = 0;
  double held_ratio = 0;
};

/// How the parts of a device were determined: the values of `source` in gpu_meter_source_info.
enum class Basis { activity, busy, slices, memory, equal };
constexpr std::string_view to_string(Basis basis) noexcept {
  constexpr std::string_view kNames[] = {"activity", "busy", "slices", "memory", "equal"};
  return kNames[static_cast<std::size_t>(basis)];
}

/// Writes parts of 1 in the order of the claims. They are divided by busy time, unless `by_holding`; if none
/// was busy, by the part of the device that each holds; if it is not divided, by memory; if no memory is
/// known, by number of processes. They sum to 1. If there is no process, returns false and all parts are 0.
inline bool divide(std::span<const Claim> claims, std::vector<double>& parts, bool by_holding = false) {
  using Measure = double (*)(const Claim&);
  static constexpr Measure kMeasures[] = {
      [](const Claim& claim) { return claim.busy_seconds; },
      [](const Claim& claim) { return claim.held_ratio; },
      [](const Claim& claim) { return claim.memory_bytes; },
      [](const Claim& claim) { return static_cast<double>(claim.processes); }};
  parts.assign(claims.size(), 0);
  for (const Measure measure : std::span(kMeasures).subspan(by_holding ? 1 : 0)) {
    std::transform(claims.begin(), claims.end(), parts.begin(), measure);
    const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
    if (sum <= 0) continue;
    for (double& part : parts) part /= sum;
    return true;
  }
  return false;
}

/// The sum over the last minute, accurate to one second. One bucket per second; the oldest is reused.
class LastMinute {
 public:
  /// `now` must not decrease.
  void add(Nanoseconds now, double amount) noexcept {
    turn(now);
    buckets_[place(second_)] += amount;
  }

  double sum(Nanoseconds now) noexcept {
    turn(now);
    double sum = 0;
    for (const double amount : buckets_) sum += amount;
    return sum;
  }

 private:
  static constexpr std::int64_t kSeconds = 60;

  static std::size_t place(std::int64_t second) noexcept {
    return static_cast<std::size_t>(second % kSeconds);
  }

  void turn(Nanoseconds now) noexcept {
    const std::int64_t second = std::chrono::floor<std::chrono::seconds>(now).count();
    if (second - second_ >= kSeconds) buckets_ = {};
    for (std::int64_t past = second_ + 1; past <= second && past < second_ + kSeconds; ++past) {
      buckets_[place(past)] = 0;
    }
    second_ = second;
  }

  std::array<double, kSeconds> buckets_{};
  std::int64_t second_ = 0;
};

/// The power that a device uses without activity, from windows between two looks in which nothing ran. A
/// context that a process holds keeps clocks and memory awake, so windows with and without a holder are
/// apart.
class IdlePower {
 public:
  /// After each look. `joules`, `seconds`: the window. `active_seconds`: of its work; nullopt: unknown.
  void note(bool is_held, double joules, double seconds, std::optional<double> active_seconds) noexcept {
    // An energy counter is up to 0.1 s old (energy counters of NVIDIA), 2 % of the shortest window.
    constexpr double kShortest = 5;
    constexpr double kMostActive = 0.005;
    is_held_ = is_held;
    if (seconds < kShortest || !active_seconds || *active_seconds > kMostActive * seconds) return;
    const double watts = joules / seconds;
    std::optional<double>& known = watts_[is_held ? 1 : 0];
    // Falls at once and rises slowly: a low quantile, as a window may have work that no counter shows.
    constexpr double kRise = 1.0 / 16;
    known = !known || watts < *known ? watts : *known + (watts - *known) * kRise;
  }
  /// nullopt: there was no window without activity yet.
  std::optional<double> watts() const noexcept {
    return watts_[is_held_ ? 1 : 0] ? watts_[is_held_ ? 1 : 0] : watts_[is_held_ ? 0 : 1];
  }

 private:
  std::array<std::optional<double>, 2> watts_;  // without and with a holder
  bool is_held_ = false;                        // at the last look
};

}  // namespace gpumeter::workloads
