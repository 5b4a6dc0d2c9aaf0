#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/result.hpp"
#include "collectors/attribution/names/name_book.hpp"
#include "collectors/attribution/names/slurm/gpu_list.hpp"

namespace gpumeter::slurm {

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
  struct Found;

  void add(const Found& found, workloads::Names& names);

  const Settings settings_;
  GpuList list_;
  bool assumes_order_ = false;
};

}  // namespace gpumeter::slurm
