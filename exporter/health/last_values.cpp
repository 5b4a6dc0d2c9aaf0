#include "exporter/health/last_values.hpp"

#include <cmath>
#include <utility>

namespace gpumeter::health {

// Both lists are in the same order, so the series after the last match is nearly always the next match.
void LastValues::rearrange(std::span<const Labels> before, std::span<const Labels> after) {
  const std::vector<Last> old = std::exchange(lasts_, std::vector<Last>(after.size()));
  std::size_t next = 0;
  for (std::size_t position = 0; position < after.size(); ++position) {
    for (std::size_t step = 0; step < old.size(); ++step) {
      const std::size_t candidate = (next + step) % old.size();
      if (!(before[candidate] == after[position])) continue;
      lasts_[position] = old[candidate];
      next = candidate + 1;
      break;
    }
  }
}

double LastValues::add(std::size_t position, double value, bool is_read, Nanoseconds now) noexcept {
  Last& last = lasts_[position];
  const bool counts = is_read && now - last.at <= kKept;
  if (!std::isnan(value) || !counts) last = {value, now};
  return last.value;
}

}  // namespace gpumeter::health
