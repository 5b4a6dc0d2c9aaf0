#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "collectors/sources/pci.hpp"
#include "programs/benchmark/measure/result.hpp"

namespace gpumeter::benchmark {

/// The work on one device.
struct Job {
  bool is_cpu = false;
  bool opencl = true;
  bool blas = true;
  std::chrono::milliseconds time{};      ///< after which no test begins
  std::optional<pci::Address> address;   ///< nullopt: the GPU has none, or `is_cpu`
  std::vector<pci::Address> idle_peers;  ///< GPUs that nobody uses
  std::vector<std::string> library_paths;
};

/// Loads the drivers' libraries and measures. For a process of its own: the drivers start threads, and some
/// never end.
Outcome work_on(const Job& job);

}  // namespace gpumeter::benchmark
