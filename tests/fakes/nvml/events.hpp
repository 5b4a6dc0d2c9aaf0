#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectors/nvidia/nvml/abi.hpp"

namespace gpumeter::fake_nvml {

/// Guarded by the library's mutex.
struct EventSetState {
  struct Registration {
    std::size_t device;  ///< its number in the scenario
    nvidia::nvml::Device handle;
    std::uint64_t types;
    unsigned min_log_level;
    std::vector<std::size_t> next;  ///< per source of the scenario: index of the next event to deliver
  };
  std::vector<Registration> registrations;
  std::vector<unsigned> contexts;  ///< of the event that nvmlEventSetWait_v3 returned last
  bool has_contexts = false;
  unsigned waiting = 0;
  bool freed = false;
};

}  // namespace gpumeter::fake_nvml
