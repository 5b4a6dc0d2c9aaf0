#include "collectors/attribution/clock_loss.hpp"

#include <algorithm>

namespace gpumeter::workloads {

void ClockLoss::pass(std::span<const Throttled> throttled, std::optional<double> clock,
                     std::optional<double> most) {
  double longest = 0;
  for (const auto& [cause, seconds] : throttled) {
    const auto last = std::ranges::find(last_, cause, &Throttled::first);
    if (last != last_.end()) longest = std::max(longest, seconds - last->second);
  }
  last_.assign(throttled.begin(), throttled.end());
  if (throttled.empty() || !clock || !most || *most <= 0) return;
  const double missing = 1 - std::clamp(*clock / *most, 0.0, 1.0);
  seconds_ = seconds_.value_or(0) + longest * missing;
}

}  // namespace gpumeter::workloads
