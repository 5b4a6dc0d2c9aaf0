#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/options.hpp"
#include "collectors/api/catalog.hpp"

namespace gpumeter::nccl {

/// A version of NCCL, or the version of NCCL that an RCCL follows.
struct Version {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned patch = 0;

  auto operator<=>(const Version&) const = default;
};

/// The first version whose RAS is asked. Queries crash jobs of earlier ones: during the initialisation of a
/// communicator before 2.27.3 (NVIDIA/nccl#1669, #1718), with missing ranks before 2.29.2 (#1762).
inline constexpr Version kOldestAsked = {2, 29, 2};

/// "2.29.3"
std::string to_string(const Version& version);

/// Removes a version from the start of the text; "2.30.7+cuda13.3" leaves "+cuda13.3".
std::optional<Version> take_version(std::string_view& text) noexcept;

/// The whole text is a version, as in the configuration.
std::optional<Version> parse_version(std::string_view text) noexcept;

/// The files of NCCL Inspector.
struct InspectorSettings {
  std::string folder;                               ///< empty: none
  Nanoseconds interval = std::chrono::seconds(30);  ///< between two dumps of a job; at least kShortest
  bool operator==(const InspectorSettings&) const = default;
};

/// Queries to the NCCL and RCCL of jobs about their ranks, by gpumeter-nccl; and the files of NCCL Inspector
/// and of PyTorch's flight recorder, which gpumeter-nccl-files reads also if the queries are not enabled.
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

/// What the program exports about runs.
inline constexpr const MetricDescriptor* kFamilies[] = {&catalog::ml_nccl_ranks,
                                                        &catalog::ml_nccl_collectives,
                                                        &catalog::ml_nccl_rank_lag,
                                                        &catalog::ml_nccl_stalled_seconds,
                                                        &catalog::ml_nccl_stalled_rank,
                                                        &catalog::ml_nccl_last_success_timestamp,
                                                        &catalog::ml_nccl_bus_bandwidth,
                                                        &catalog::ml_nccl_operation_duration,
                                                        &catalog::ml_nccl_recorded_operations,
                                                        &catalog::ml_nccl_lost_operations,
                                                        &catalog::ml_nccl_dump_timestamp,
                                                        &catalog::ml_flight_recorder_collective,
                                                        &catalog::ml_flight_recorder_dump_timestamp};

}  // namespace gpumeter::nccl
