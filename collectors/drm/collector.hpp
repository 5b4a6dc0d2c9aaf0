#pragma once

#include <memory>

#include "collectors/api/collector.hpp"
#include "collectors/drm/devices.hpp"

namespace gpumeter::drm_devices {

inline constexpr CollectorOption kDrmOptions[] = {
    {"tegra", CollectorOption::Kind::text, "auto",
     "The GPU of a Jetson. auto: read from sysfs unless NVML lists it; on, off: always, never."},
    {"library", CollectorOption::Kind::text, "libnvidia-ml.so.1",
     "NVML, asked on a Jetson whether it lists the GPU: a file name for the loader, or a path."},
};

std::optional<OptionProblem> check_drm(const CollectorContext& context);
Result<std::unique_ptr<Collector>> open_drm(const CollectorContext& context);

/// GPUs and NPUs whose drivers no other collector reads: files of sysfs, hwmon, devfreq and the clients of
/// /proc/PID/fdinfo; no library. Each has its own driver, so any number is read in parallel.
inline constexpr CollectorEntry kDrm = {
    .name = "drm",
    .enabled_by_default = true,
    .max_parallel = 0,
    .options = kDrmOptions,
    .metrics = drm_row_docs,
    .check = check_drm,
    .open = open_drm,
};

}  // namespace gpumeter::drm_devices
