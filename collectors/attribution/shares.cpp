#include "collectors/attribution/shares.hpp"

#include <algorithm>
#include <numeric>

namespace gpumeter::workloads {
namespace {

double busy_of(const Claim& claim) { return claim.busy_seconds; }
double memory_of(const Claim& claim) { return claim.memory_bytes; }
double processes_of(const Claim& claim) { return static_cast<double>(claim.processes); }

}  // namespace

bool divide(std::span<const Claim> claims, std::vector<double>& parts) {
  parts.assign(claims.size(), 0);
  for (const auto measure : {busy_of, memory_of, processes_of}) {
    std::transform(claims.begin(), claims.end(), parts.begin(), measure);
    const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
    if (sum <= 0) continue;
    for (double& part : parts) part /= sum;
    return true;
  }
  return false;
}

}  // namespace gpumeter::workloads
