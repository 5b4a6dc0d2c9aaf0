#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.hpp"
#include "collectors/api/catalog.hpp"

namespace gpumeter::profiles {

inline constexpr std::string_view kThermal = "thermal_throttling";
inline constexpr std::string_view kSlowSteps = "slow_steps";
inline constexpr std::string_view kLowMfu = "low_mfu";

/// When the conditions hold.
struct Thresholds {
  std::vector<std::string> enabled;            ///< names of conditions
  Nanoseconds hold = std::chrono::minutes(1);  ///< how long a condition must hold
  unsigned throttled_percent = 20;             ///< of the time
  unsigned slow_percent = 200;                 ///< of the median duration of a step
  unsigned mfu_percent = 20;

  bool has(std::string_view condition) const noexcept {
    return std::find(enabled.begin(), enabled.end(), condition) != enabled.end();
  }
  bool operator==(const Thresholds&) const = default;
};

/// The limits of profiles that conditions cause.
struct Budget {
  unsigned per_run = 3;  ///< in 24 hours
  unsigned per_host = 10;
  Nanoseconds cooldown = std::chrono::hours(1);  ///< between two of a run
  bool operator==(const Budget&) const = default;
};

/// Profiles of jobs on request and by condition.
struct Settings {
  bool enabled = false;
  std::string socket = "/run/gpumeter/profiles.sock";  ///< of `gpumeter profile`; empty: none
  std::string kineto_folder;                           ///< KINETO_IPC_SOCKET_DIR of jobs; empty: none
  std::vector<options::Port> profiler_ports;  ///< of TensorFlow's and JAX's profiler service; empty: none
  std::vector<std::string> worker_sockets;    ///< of PyTorch's debug server; patterns; empty: none
  std::string folder = "/tmp";                ///< of the traces, as the jobs see it
  std::string trace_folder = "/var/cache/gpumeter/traces";  ///< of those that the program writes; empty: none
  std::vector<std::string> users;                           ///< names or uids; empty: all users
  Thresholds thresholds;                                    ///< of the conditions that take a profile
  Duration duration = std::chrono::seconds(5);              ///< of a condition's profile
  Budget budget;
  bool operator==(const Settings&) const = default;
};

/// `profiles` in the configuration.
extern const options::Section kSection;

/// What the program exports about runs.
inline constexpr const MetricDescriptor* kFamilies[] = {&catalog::ml_profiles,
                                                        &catalog::ml_profile_last_timestamp};

}  // namespace gpumeter::profiles
