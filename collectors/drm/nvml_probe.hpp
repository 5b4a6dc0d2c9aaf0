#pragma once

#include <string>

namespace gpumeter::drm_devices {

/// Number of GPUs that NVML lists with a uuid. 0 if there is no NVML or it does not work. The library is
/// opened, asked and closed again; the driver may hang meanwhile.
unsigned gpus_of_nvml(const std::string& library);

}  // namespace gpumeter::drm_devices
