#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace gpumeter::workloads {

/// What somebody has of a device: a process, or a workload with all of its processes. 0 where it is nothing
/// and where the driver does not tell.
struct Claim {
  double busy_seconds = 0;
  double memory_bytes = 0;
  std::size_t processes = 0;
};

/// Parts of 1 in the order of the claims: by busy time; where nobody was busy, by memory; where nobody holds
/// any that is known, by number of processes. They sum to 1. False: nobody is there, and all are 0.
bool divide(std::span<const Claim> claims, std::vector<double>& parts);

}  // namespace gpumeter::workloads
