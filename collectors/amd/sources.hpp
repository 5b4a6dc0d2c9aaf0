#pragma once

#include <string>
#include <vector>

#include "collectors/api/source_report.hpp"

namespace gpumeter::amd {

/// What there is of a card's sources below `sysfs_root`, each by a file that stands for it.
std::vector<SourceReport> sources_of_card(const std::string& sysfs_root, const DeviceInfo& info);

}  // namespace gpumeter::amd
