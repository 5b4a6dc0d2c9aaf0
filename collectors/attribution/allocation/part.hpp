#pragma once

#include <string>

#include "base/options.hpp"
#include "collectors/api/part.hpp"

namespace gpumeter::allocation {

/// Who was given which GPU, whether or not a process uses it.
struct Settings {
  unsigned idle_percent = 1;                         ///< busy share below which an allocated GPU is idle
  std::string slurm = "/run/gpumeter/slurm";         ///< files of Slurm's prolog; empty: none
  std::string slurm_gpus;                            ///< output of `slurmd -G`, or gres.conf; empty: none
  std::string manual = "/run/gpumeter/allocations";  ///< files of `gpumeter allocate`; empty: none
  std::string held = "/run/gpumeter-held";           ///< files of gpumeter-held; empty: none
  bool operator==(const Settings&) const = default;
};

/// `allocations` in the configuration.
extern const options::Section kSection;

/// Reads who was given which GPU from the folders of Slurm's prolog, of `gpumeter allocate` and of
/// gpumeter-held, and keeps the series of all sources' allocations in the store. Requests lists of processes
/// when a job or a pod begins. The folders' file systems may hang.
extern const PartEntry kPart;

}  // namespace gpumeter::allocation
