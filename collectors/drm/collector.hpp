#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bounded_calls.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/files/context.hpp"
#include "collectors/files/discovery.hpp"

namespace gpumeter::drm_devices {

/// A device that this collector reads, by its kernel driver. A new device is an entry in devices.cpp.
struct DrmKind {
  std::string_view driver;      ///< a pattern, see files::matches()
  std::string_view vendor;      ///< the label `vendor`
  std::string_view product;     ///< the model, if neither a file nor the device tree names it
  std::string_view model_file;  ///< a name as in Paths; empty: none
  std::string_view serial_file;
  std::string_view firmware_file;
  files::Kind kind;
  bool is_tegra = false;  ///< NVML may read it as well
};

std::span<const DrmKind> kinds() noexcept;

/// The kind that reads a driver's devices; null: a display without a GPU, or another collector's.
/// `renders`: the device has a render node or is an accelerator, so an unknown driver is no mere display.
const DrmKind* kind_of(std::string_view driver, bool renders) noexcept;

std::span<const RowDoc> drm_row_docs();

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
