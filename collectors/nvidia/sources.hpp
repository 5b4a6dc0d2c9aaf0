#pragma once

#include <string>
#include <vector>

#include "collectors/api/device.hpp"
#include "collectors/api/source_report.hpp"

namespace gpumeter::nvidia {

/// What NVML gives of a GPU, group by group, for a person who asks why a value is missing. May block.
std::vector<SourceReport> sources_of_gpu(const std::string& library, const DeviceInfo& info);

}  // namespace gpumeter::nvidia
