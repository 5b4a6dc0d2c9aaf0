#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "exporter/health/rulebook.hpp"

namespace gpumeter::health {

/// How often each value of a reading occurs among like devices, for the terms that compare devices.
class Peers {
 public:
  static bool compares(const Term& term) noexcept {
    return term.compare == Compare::differs_in_model || term.compare == Compare::differs_in_vendor ||
           term.compare == Compare::below_usual;
  }

  /// Counts the values of all devices.
  void count(const Rulebook& rulebook, const Readings& readings);

  /// True if no more than half of the like devices have this value, which is one that was counted. If no
  /// value has a majority, all devices differ.
  bool differs(const Place& place, const DeviceFacts& device, double value) const;

  /// The highest value that more than half of the like devices have or exceed; one of them is the device.
  double usual(const Place& place, const DeviceFacts& device) const;

 private:
  using Group = std::pair<std::size_t, std::string>;  ///< column, kind of device
  static Group group_of(const Place& place, const DeviceFacts& device);

  std::map<Group, std::map<double, std::size_t>> counts_;
};

}  // namespace gpumeter::health
