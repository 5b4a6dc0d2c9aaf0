#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace gpumeter::workloads {

/// The use of a device by a process, or by a workload with all of its processes. A value that the driver does
/// not report is 0.
struct Claim {
  double busy_seconds = 0;
  double memory_bytes = 0;
  std::size_t processes = 0;
};

/// Writes parts of 1 in the order of the claims. They are divided by busy time; if none was busy, by memory;
/// if no memory is known, by number of processes. They sum to 1. If there is no process, returns false and
/// all parts are 0.
inline bool divide(std::span<const Claim> claims, std::vector<double>& parts) {
  using Measure = double (*)(const Claim&);
  constexpr Measure kMeasures[] = {[](const Claim& claim) { return claim.busy_seconds; },
                                   [](const Claim& claim) { return claim.memory_bytes; },
                                   [](const Claim& claim) { return static_cast<double>(claim.processes); }};
  parts.assign(claims.size(), 0);
  for (const Measure measure : kMeasures) {
    std::transform(claims.begin(), claims.end(), parts.begin(), measure);
    const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
    if (sum <= 0) continue;
    for (double& part : parts) part /= sum;
    return true;
  }
  return false;
}

}  // namespace gpumeter::workloads
