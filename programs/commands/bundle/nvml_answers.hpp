#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace gpumeter::bundle {

/// The answers of one GPU or MIG instance by the key of each, with the call that gave it. A first good answer
/// stays: newer calls are asked first.
struct Answers {
  struct Answer {
    std::string value;  ///< YAML
    std::string_view call;
    bool is_error = false;
  };
  std::map<std::string, Answer> by_key;
  std::vector<Answers> instances;       ///< of MIG
  std::vector<std::string> identities;  ///< values that name this one device or its machine

  std::string yaml(const std::string& indent) const;
};

/// What NVML answered, as the scenario that tests/fakes/nvml plays.
struct NvmlReading {
  std::string scenario;  ///< empty: there is no NVML, or no GPU of it
  std::vector<std::string> identities;
  std::vector<std::string> missing;  ///< sentences
  bool hangs = false;                ///< a thread was left behind in a call
};

/// Asks the library for all that gpumeter knows to ask. A GPU whose call does not return in 20 s is left out;
/// its thread stays behind, so that the process must end by _exit().
NvmlReading read_nvml(const std::string& library, const Clock& clock);

}  // namespace gpumeter::bundle
