#pragma once

#include <span>
#include <string_view>

#include "collectors/api/collector.hpp"
#include "collectors/files/device.hpp"

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

}  // namespace gpumeter::drm_devices
