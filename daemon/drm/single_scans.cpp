#include "daemon/drm/single_scans.hpp"

#include <utility>
#include <vector>

namespace gpumeter {

std::shared_ptr<void> SingleScans::watch(std::string_view device, Nanoseconds) {
  devices_.emplace(device);
  return {this, [](void*) {}};
}

std::shared_ptr<const DrmUse> SingleScans::use_of(std::string_view device) const {
  const auto use = uses_.find(device);
  return use == uses_.end() ? nullptr : use->second;
}

// A scan ends with its budget, and the next one continues. A tree without processes never has a whole round.
void SingleScans::scan() {
  constexpr int kMostRounds = kAtMost / fdinfo::Scanner::kBudget;
  if (devices_.empty()) return;
  const std::vector<std::string> devices(devices_.begin(), devices_.end());
  for (int round = 0; round < kMostRounds; ++round) {
    fdinfo::Scanner::Result result = scanner_.scan(devices, kAtMost);
    uses_ = std::move(result.uses);
    if (result.is_whole) return;
  }
}

}  // namespace gpumeter
