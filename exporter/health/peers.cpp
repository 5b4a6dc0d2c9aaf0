#include "exporter/health/peers.hpp"

#include <cmath>

namespace gpumeter::health {

Peers::Group Peers::group_of(const Place& place, const DeviceFacts& device) {
  if (place.term->compare == Compare::differs_in_vendor) return {place.column, device.vendor};
  return {place.column, device.vendor + '\n' + device.model};
}

void Peers::count(const Rulebook& rulebook, const Readings& readings) {
  counts_.clear();
  for (const Rule& rule : rulebook.rules()) {
    for (const Place& place : rule.places) {
      if (!compares(*place.term)) continue;
      for (std::size_t device = 0; device < readings.devices().size(); ++device) {
        const double value = readings.value(device, place.column);
        if (!std::isnan(value)) ++counts_[group_of(place, readings.devices()[device])][value];
      }
    }
  }
}

double Peers::usual(const Place& place, const DeviceFacts& device) const {
  const auto& counts = counts_.at(group_of(place, device));
  std::size_t all = 0;
  for (const auto& [each, count] : counts) all += count;
  std::size_t as_high = 0;
  auto each = counts.rbegin();
  while (2 * (as_high += each->second) <= all) ++each;
  return each->first;
}

bool Peers::differs(const Place& place, const DeviceFacts& device, double value) const {
  const auto& counts = counts_.at(group_of(place, device));
  std::size_t all = 0;
  for (const auto& [each, count] : counts) all += count;
  return 2 * counts.at(value) <= all;
}

}  // namespace gpumeter::health
