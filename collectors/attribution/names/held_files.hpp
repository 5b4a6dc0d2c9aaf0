#pragma once

#include <string>

#include "base/result.hpp"
#include "collectors/attribution/names/name_book.hpp"

/// GPUs that the control groups of Slurm jobs permit, as gpumeter-held (programs/held) found them. Its
/// files are those of `gpumeter allocate`, in a folder of root's.
namespace gpumeter::held {

/// All jobs that have a control group below `sysfs`/fs/cgroup: a file that stayed counts for nothing. Error:
/// others than root may write in the folder. Blocks as the file systems do.
Result<workloads::Names> read_held(const std::string& folder, const std::string& sysfs);

}  // namespace gpumeter::held
