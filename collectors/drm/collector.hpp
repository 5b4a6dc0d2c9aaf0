#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/bounded_calls.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/drm/devices.hpp"
#include "collectors/files/discovery.hpp"

namespace gpumeter::drm_devices {

/// Finds the devices of the kinds in devices.hpp: behind class/drm, class/accel and class/tenstorrent, bound
/// to a platform driver, and behind class/devfreq (a Tegra's GPU has no DRM node). One thread.
///
/// A platform device has no address on the bus, so its name there ("fec00000.v3d", from the device tree) is
/// its uuid. The GPU of a Tegra is left to NVML if NVML lists more GPUs than the PCI bus has.
class DrmDiscovery {
 public:
  using NvmlCount = std::function<unsigned()>;  ///< number of GPUs that NVML lists with a uuid

  DrmDiscovery(std::string sysfs_root, NvmlCount nvml, const Clock& clock,
               const std::shared_ptr<HangingCalls>& hanging);

  Discovery find();

 private:
  std::vector<files::ClassDevice> candidates() const;
  bool nvml_reads_tegra();

  const std::string sysfs_root_;
  const NvmlCount nvml_;
  files::Identifier devices_;
  BoundedCalls library_;
};

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
