#pragma once

#include <string>
#include <vector>

#include "programs/benchmark/measure/pace.hpp"
#include "programs/benchmark/measure/result.hpp"
#include "programs/benchmark/opencl/device.hpp"

namespace gpumeter::benchmark::opencl {

/// Which device to measure.
struct Choice {
  bool is_cpu = false;  ///< the first CPU device; otherwise the GPU with this address
  pci::Address address;
  std::vector<pci::Address> idle_peers;  ///< GPUs that nobody uses: the target of transfers between devices
};

/// Measures a device by OpenCL. The outcome has a note if no driver knows the device.
void measure(const Choice& choice, const Pace& pace, Outcome& outcome);

}  // namespace gpumeter::benchmark::opencl
