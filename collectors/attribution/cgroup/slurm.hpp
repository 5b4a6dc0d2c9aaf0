#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

/// Slurm jobs, recognised by the folders that slurmd and slurmstepd create. Any bytes, any thread, no
/// allocation.
namespace gpumeter::cgroup {

/// A job's folder: `job` or `sluid`, and the deeper parts that the path has. Views into the path.
struct SlurmFolder {
  std::string_view job;    ///< decimal
  std::string_view sluid;  ///< "s" and 13 characters: the folder's name since Slurm 26.05
  std::string_view step;   ///< a number, batch, extern, interactive, TBD
  std::string_view task;   ///< a number, special
  std::string_view node;   ///< set if several slurmd run on one machine
  std::string_view uid;    ///< cgroup v1 only
  bool daemon = false;     ///< slurmstepd itself, not the user's program

  std::string_view id() const noexcept { return job.empty() ? sluid : job; }
};

/// Parses a path from its root. v1: /slurm[_NODE]/uid_N/job_N. v2: [NODE_]slurmstepd.scope/{job_N, SLUID}
/// below slices that are not a user's. id() is empty if the folder is not a job's.
SlurmFolder slurm_folder(std::string_view path) noexcept;

/// The parts of a SLUID (Slurm, src/common/sluid.h).
struct Sluid {
  std::uint16_t cluster;                   ///< the number that slurmdbd gave the cluster
  std::chrono::milliseconds submitted_at;  ///< since 1970, by CLOCK_TAI: 37 s ahead of UTC if the kernel
                                           ///< has the leap seconds
  std::uint16_t sequence;                  ///< number within the jobs of one millisecond

  bool operator==(const Sluid&) const = default;
};

/// nullopt if the text is not a SLUID or exceeds 64 bits.
std::optional<Sluid> decode_sluid(std::string_view sluid) noexcept;

}  // namespace gpumeter::cgroup
