#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

/// Jobs of Slurm by the folders that slurmd and slurmstepd make. Any bytes, any thread, no allocation.
namespace gpumeter::cgroup {

/// A job's folder. `job` or `sluid` is there, the rest as far as the path goes; views into the path.
struct SlurmFolder {
  std::string_view job;    ///< decimal
  std::string_view sluid;  ///< "s" and 13 characters: what names the folder since Slurm 26.05
  std::string_view step;   ///< a number, batch, extern, interactive, TBD
  std::string_view task;   ///< a number, special
  std::string_view node;   ///< where several slurmd run on one machine
  std::string_view uid;    ///< cgroup v1 only
  bool daemon = false;     ///< slurmstepd itself, not what the user runs

  std::string_view id() const noexcept { return job.empty() ? sluid : job; }
};

/// Reads a path from its root: /slurm[_NODE]/uid_N/job_N (v1), or slices, not a user's, and
/// [NODE_]slurmstepd.scope/{job_N, SLUID} (v2). An empty id(): no job's.
SlurmFolder slurm_folder(std::string_view path) noexcept;

/// What a SLUID says of itself (Slurm, src/common/sluid.h).
struct Sluid {
  std::uint16_t cluster;                   ///< the number that slurmdbd gave the cluster
  std::chrono::milliseconds submitted_at;  ///< since 1970. slurmctld takes it from CLOCK_TAI: where the
                                           ///< kernel knows the leap seconds, 37 s ahead of UTC
  std::uint16_t sequence;                  ///< among the jobs of one millisecond

  bool operator==(const Sluid&) const = default;
};

/// nullopt: no SLUID, or no 64-bit number.
std::optional<Sluid> decode_sluid(std::string_view sluid) noexcept;

}  // namespace gpumeter::cgroup
