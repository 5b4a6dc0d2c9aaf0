#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/options.hpp"
#include "collectors/profiles/budget_book.hpp"
#include "collectors/profiles/conditions.hpp"

namespace gpumeter::profiles {

/// Profiles of jobs on request and by condition.
struct Settings {
  bool enabled = false;
  std::string socket = "/run/gpumeter/profiles.sock";  ///< of `gpumeter profile`; empty: none
  std::string kineto_folder;                           ///< KINETO_IPC_SOCKET_DIR of jobs; empty: none
  std::vector<options::Port> profiler_ports;  ///< of TensorFlow's and JAX's profiler service; empty: none
  std::vector<std::string> worker_sockets;    ///< of PyTorch's debug server; patterns; empty: none
  std::string folder = "/tmp";                ///< of the traces, as the jobs see it
  std::string trace_folder = "/var/cache/gpumeter/traces";  ///< of those that the daemon writes; empty: none
  std::vector<std::string> users;                           ///< names or uids; empty: all users
  Thresholds thresholds;                                    ///< of the conditions that take a profile
  Duration duration = std::chrono::seconds(5);              ///< of a condition's profile
  Budget budget;
  bool operator==(const Settings&) const = default;
};

/// `profiles` in the configuration.
extern const options::Section kSection;

}  // namespace gpumeter::profiles
