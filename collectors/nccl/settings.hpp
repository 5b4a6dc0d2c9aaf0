#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/options.hpp"
#include "collectors/nccl/version.hpp"

namespace gpumeter::nccl {

/// The files of NCCL Inspector.
struct InspectorSettings {
  std::string folder;                               ///< empty: none
  Nanoseconds interval = std::chrono::seconds(30);  ///< between two dumps of a job; at least kShortest
  bool operator==(const InspectorSettings&) const = default;
};

/// Queries to the NCCL and RCCL of jobs about their ranks, and the files of NCCL Inspector and of PyTorch's
/// flight recorder, which are read also if the queries are not enabled.
struct Settings {
  bool enabled = false;
  std::vector<std::string> users;                   ///< names or uids in digits; empty: all users
  Nanoseconds interval = std::chrono::seconds(30);  ///< at least kShortest
  std::uint16_t port = 28028;                       ///< NCCL_RAS_CLIENT_PORT of NCCL's src/ras/ras_internal.h
  Version oldest = kOldestAsked;                    ///< no process with an older NCCL is asked
  InspectorSettings inspector;
  std::vector<std::string> flight_recorder;  ///< prefixes of PyTorch's dumps; empty: none
  bool operator==(const Settings&) const = default;
};

/// `nccl` in the configuration.
extern const options::Section kSection;

}  // namespace gpumeter::nccl
