#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
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
  std::string id;     ///< SLURM_JOB_ID, decimal
  std::string sluid;  ///< SLURM_JOB_SLUID, since Slurm 25.11
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

/// The node's own list of GPUs, which turns a position into a device. Parsed from what `slurmd -G` prints, or
/// from gres.conf: lines with Name=gpu and File=, such as
///   Gres Name=gpu Type=a100 Count=2 Index=0 ID=7696487 File=/dev/nvidia[0-1] Links=-1,4 Flags=HAS_FILE
class GpuList {
 public:
  /// Limit of GPUs of one node.
  static constexpr std::size_t kMost = 256;

  GpuList() = default;
  /// Any bytes.
  static GpuList parse(std::string_view text);

  /// Number of devices; 0: the text has none.
  std::size_t size() const noexcept { return files_.size(); }
  /// The device at this position of slurmd's list. nullopt: there is none, or its file is no GPU's known name
  /// (/dev/nvidiaN, /dev/dri/renderDN).
  std::optional<workloads::DeviceSelector> at(std::size_t position) const;

 private:
  std::vector<std::string> files_;
};

/// The folder with one file per job on this machine, all of root's. One thread.
class Folder {
 public:
  struct Settings {
    std::string path;      ///< such as /run/gpumeter/slurm
    std::string gpu_list;  ///< file for GpuList; empty: none
    std::string sysfs;     ///< "/sys"
  };
  explicit Folder(Settings settings) : settings_(std::move(settings)) {}

  /// Limit of files; a machine runs fewer jobs.
  static constexpr std::size_t kMostJobs = 1024;
  /// A file counts for this long without a control group of its job: slurmd runs the prolog before it makes
  /// the group, and may be killed before the epilog.
  static constexpr auto kWithoutGroup = std::chrono::seconds(60);

  /// Reads all jobs. `now`: since 1970. Error: others than root may write in the folder. Blocks as the file
  /// system does.
  Result<workloads::Names> read(std::chrono::seconds now);

  /// True if the last read() resolved a position without the node's list: in the order of PCI addresses.
  bool assumes_order() const noexcept { return assumes_order_; }

 private:
  void add(const Job& job, std::chrono::seconds since, bool is_by_sluid, workloads::Names& names);

  const Settings settings_;
  GpuList list_;
  bool assumes_order_ = false;
};

}  // namespace gpumeter::slurm
