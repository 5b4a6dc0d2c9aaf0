#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpumeter::intel {

/// One graphics tile (GT) of a card, and its files as either driver names them. Sources: kernel 7.2,
/// i915/gt/intel_gt_sysfs_pm.c, xe/xe_gt_freq.c, xe/xe_gt_idle.c, xe/xe_gt_throttle.c.
struct Gt {
  int index = 0;                     ///< unique on the card, over all tiles
  bool is_media = false;             ///< it has only video engines
  std::string act_freq;              ///< MHz; 0 while the clock is gated
  std::string max_freq;              ///< MHz; the highest that the hardware allows
  std::string idle_ms;               ///< time in RC6 or C6 since the driver was loaded
  std::string throttle_folder;       ///< empty: before Gen11
  std::string_view throttle_prefix;  ///< of the files in it, one per reason
  std::vector<std::string> engines;  ///< xe: classes of its engines, "rcs", "ccs"
};

/// The GTs below the folder of a PCI function, by index. Graphics before the drivers had a folder for each GT
/// have one, with the files of the whole card.
std::vector<Gt> find_gts(const std::string& function);

}  // namespace gpumeter::intel
