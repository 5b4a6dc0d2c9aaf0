#include "daemon/fleet/left_behind.hpp"

#include <algorithm>

namespace gpumeter {

bool LeftBehind::has(const std::string& collector, const std::string& purpose) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.collector == collector && entry.purpose == purpose && !entry.owner.expired();
  });
}

bool LeftBehind::has_any() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return !entry.owner.expired(); });
}

std::vector<std::string> LeftBehind::take_ended() {
  std::vector<std::string> collectors;
  std::erase_if(entries_, [&](const Entry& entry) {
    if (!entry.owner.expired()) return false;
    collectors.push_back(entry.collector);
    return true;
  });
  return collectors;
}

}  // namespace gpumeter
