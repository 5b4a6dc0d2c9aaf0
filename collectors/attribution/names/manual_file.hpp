#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "collectors/attribution/names/name_book.hpp"

/// GPUs that an administrator gave to somebody by `gpumeter allocate`, or that the control groups of Slurm
/// jobs permit, as gpumeter-held (programs/held) found them. Each workload has one file in a folder of
/// root's; it has lines NAME=VALUE.
namespace gpumeter::manual {

/// The longest file that is read.
inline constexpr std::size_t kMostBytes = 16384;
/// Limit of files, and of GPUs in each.
inline constexpr std::size_t kMostFiles = 1024;
inline constexpr std::size_t kMostGpus = 256;
/// The longest name of a workload.
inline constexpr std::size_t kLongestName = 100;

struct Grant {
  workloads::WorkloadId workload;
  std::string user;                           ///< empty: unknown
  std::vector<std::string> gpus;              ///< uuids and PCI addresses
  std::optional<std::chrono::seconds> since;  ///< since 1970

  bool operator==(const Grant&) const = default;
};

/// True for letters, digits and . _ @ : + - if the name starts with a letter or a digit: such a name is a
/// file's name too.
bool is_name(std::string_view text);

/// The name of the workload's file.
std::string file_name(const workloads::WorkloadId& workload);

std::string to_text(const Grant& grant);
/// nullopt: the text names no workload.
std::optional<Grant> parse_grant(std::string_view text);

std::vector<workloads::Allocation> allocations_of(const Grant& grant);

/// All files of the folder, in the order of their names. Error: others than root may write in the folder.
/// Blocks as the file system does.
Result<std::vector<Grant>> read_grants(const std::string& folder);

/// What `gpumeter allocate` gave.
Result<workloads::Names> read_allocated(const std::string& folder);

/// What gpumeter-held found, for all jobs that have a control group below `sysfs`/fs/cgroup: a file that
/// stayed counts for nothing. Error: others than root may write in the folder. Blocks as the file systems do.
Result<workloads::Names> read_held(const std::string& folder, const std::string& sysfs);

}  // namespace gpumeter::manual
