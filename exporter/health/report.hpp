#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "exporter/health/conditions.hpp"
#include "exporter/store/labels.hpp"

namespace gpumeter::health {

/// From best to worst, as the worst of several is chosen.
enum class State : std::uint8_t { ok, unknown, degraded, failed };
inline constexpr EnumNames<State, 4> kStateNames = {{{State::ok, "ok"},
                                                     {State::degraded, "degraded"},
                                                     {State::failed, "failed"},
                                                     {State::unknown, "unknown"}}};
constexpr std::string_view to_string(State state) noexcept { return kStateNames.of(state); }

/// A condition that holds.
struct Finding {
  std::string reason;
  Severity severity;
  Action action;
  std::string text;     ///< one sentence with its values
  double value;         ///< of the condition's first term
  Nanoseconds since{};  ///< since when it holds (CLOCK_MONOTONIC)
  std::string alert;
  std::string runbook;  ///< anchor in docs/runbooks.md

  /// True if both are of the same condition, or of variants of it that ask for the same.
  bool is_same(const Finding& other) const noexcept {
    return reason == other.reason && severity == other.severity && action == other.action;
  }
};

/// The state of a device with these findings: failed, degraded or ok.
State state_of(std::span<const Finding> findings);

/// An advisory that concerns a device.
struct Advice {
  std::string name;
  std::string text;    ///< one sentence
  std::string source;  ///< where it is reported
};

struct DeviceHealth {
  Labels labels;  ///< the device's own, for its series
  std::string gpu;
  std::string uuid;
  std::string vendor;
  std::string model;
  std::string pci_address;  ///< empty if unknown
  State state = State::unknown;
  Nanoseconds since{};            ///< of the state (CLOCK_MONOTONIC)
  std::vector<Finding> findings;  ///< failed ones first
  std::vector<Advice> advice;     ///< information that changes no state
};

/// The judgement of one moment.
struct Report {
  Nanoseconds at{};                   ///< CLOCK_MONOTONIC
  std::vector<DeviceHealth> devices;  ///< by index
  std::vector<Finding> machine;       ///< findings that belong to no device
  /// The worst of all; unknown if there is no device and no finding.
  State state = State::unknown;
};

}  // namespace gpumeter::health
