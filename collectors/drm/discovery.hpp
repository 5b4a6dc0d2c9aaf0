#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/bounded_calls.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/drm/devices.hpp"
#include "collectors/sources/class_devices.hpp"

namespace gpumeter::drm_devices {

/// Finds the devices of the kinds in devices.hpp: behind class/drm, class/accel and class/tenstorrent, bound
/// to a platform driver, and behind class/devfreq (a Tegra's GPU has no DRM node). One thread.
///
/// A platform device has no address on the bus, so its name there ("fec00000.v3d", from the device tree) is
/// its uuid. The GPU of a Tegra is left to NVML if NVML lists more GPUs than the PCI bus has.
class DrmDiscovery {
 public:
  using NvmlCount = std::function<unsigned()>;  ///< see gpus_of_nvml()

  DrmDiscovery(std::string sysfs_root, NvmlCount nvml, const Clock& clock,
               const std::shared_ptr<HangingCalls>& hanging);

  Discovery find();

 private:
  std::vector<ClassDevice> candidates() const;
  bool nvml_reads_tegra();

  const std::string sysfs_root_;
  const NvmlCount nvml_;
  BoundedCalls identify_;
  BoundedCalls library_;
};

}  // namespace gpumeter::drm_devices
