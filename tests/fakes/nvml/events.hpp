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
    std::vector<std::size_t> next;  ///< per source of the scenario: index of the next event to deliver
  };
  std::vector<Registration> registrations;
  unsigned waiting = 0;
  bool freed = false;
};

}  // namespace gpumeter::fake_nvml
