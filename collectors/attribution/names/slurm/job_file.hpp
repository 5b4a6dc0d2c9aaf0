#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/api/series.hpp"
#include "collectors/attribution/names/name_book.hpp"

/// Slurm jobs by name. Slurm's prolog writes one file per job, and its epilog removes it
/// (packaging/integrations/slurm). A file has lines NAME=VALUE, with the variables of slurmd's prolog.
namespace gpumeter::slurm {

/// The longest file that is read; the prolog writes about 300 bytes.
inline constexpr std::size_t kMostBytes = 16384;
/// Limit of the GPUs of one job on this machine.
inline constexpr std::size_t kMostGpus = 256;

/// A job as root's file describes it. Any bytes are possible; texts are label values.
struct Job {
  std::string id;                    ///< SLURM_JOB_ID, decimal
  std::string sluid;                 ///< SLURM_JOB_SLUID, since Slurm 25.11
  std::optional<std::uint32_t> uid;  ///< SLURM_JOB_UID
  std::string user, account, partition, qos;
  std::string array_job, array_task;          ///< decimal
  std::string name;                           ///< only from the task prolog
  std::optional<std::chrono::seconds> start;  ///< since 1970
  std::vector<std::string> uuids;  ///< of its GPUs and MIG instances; empty if slurmd does not know them
  /// Positions of its GPUs in slurmd's own list, if there are no `uuids`. slurmd sorts the list by the names
  /// of the device files or by the links between GPUs; the numbers are no minors (Slurm,
  /// src/plugins/gres/gpu/gres_gpu.c, _merge_system_gres_conf()).
  std::vector<std::size_t> positions;

  bool operator==(const Job&) const = default;
};

/// nullopt if the text has no job number. Unknown lines are ignored; of equal names the last counts.
std::optional<Job> parse_job(std::string_view text);

/// Adds what the task prolog wrote, which runs as the job's user: the job's name and its array's numbers.
/// Other lines have no effect, so a user can misname only jobs of their own.
void add_claims(std::string_view text, Job& job);

/// Labels of gpu_workload_info, sorted by name: slurm_account, slurm_job and so on, and user.
std::vector<Label> labels_of(const Job& job);

}  // namespace gpumeter::slurm
