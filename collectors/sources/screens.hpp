#pragma once

#include <string>
#include <vector>

#include "collectors/sources/sysfs.hpp"

namespace gpumeter {

/// The screens of a card, by the DPMS state of each connector. The kernel keeps the states in memory, so
/// reading them does not wake the card. A screen that is on keeps its card awake. Lane thread.
class Screens {
 public:
  Screens() = default;
  /// `card_folder`: the folder of the PCI function.
  explicit Screens(const std::string& card_folder);

  bool any_on() const noexcept;

 private:
  std::vector<sysfs::File> dpms_;
};

}  // namespace gpumeter
