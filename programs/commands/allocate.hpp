#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "collectors/attribution/names/manual_file.hpp"

namespace gpumeter {

/// The words of `gpumeter allocate`.
struct AllocateOptions {
  enum class Verb : std::uint8_t { list, set, clear };
  Verb verb = Verb::list;
  workloads::WorkloadId workload{cgroup::Kind::other, ""};
  std::string user;               ///< empty: unknown
  std::vector<std::string> gpus;  ///< each a uuid, a PCI address, or an index as in the label gpu
};

/// Carries out the command in the folder `allocations.manual`, which is created; the daemon reads it every
/// second, so that the command also works while no daemon runs. `state`: paths.state, for indexes. Returns
/// the text to print.
Result<std::string> allocate(const AllocateOptions& options, const std::string& folder,
                             const std::string& state);

}  // namespace gpumeter
