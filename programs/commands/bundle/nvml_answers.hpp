#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"

namespace gpumeter::bundle {

/// What NVML answered, as the scenario that tests/fakes/nvml plays.
struct NvmlReading {
  std::string scenario;  ///< empty: there is no NVML, or no GPU of it
  std::vector<std::string> identities;
  std::vector<std::string> missing;  ///< sentences
  bool hangs = false;                ///< a thread was left behind in a call
};

/// Asks the library for all that gpumeter knows to ask. A GPU whose call does not return is left out after 10
/// s; its thread stays behind, so that the process must end by _exit().
NvmlReading read_nvml(const std::string& library, const Clock& clock);

}  // namespace gpumeter::bundle
