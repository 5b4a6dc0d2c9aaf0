#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>

#include "collectors/api/drm_use.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/sources/fdinfo/device_watch.hpp"

namespace gpumeter::fdinfo {

/// The busy time of one device from the scans of its clients, for rows of gpu_engine_busy_seconds_total,
/// gpu_busy_seconds_total and gpu_utilization_ratio. The busy time of the device is that of its busiest class
/// of engines: classes overlap in time, so their sum would be too much. Work of processes that may not be
/// read, and of the kernel, is missing. Lane thread; no call blocks or allocates.
class BusyCounters {
 public:
  /// Takes the last scan of the watch. Once per pass, with Pass::now.
  void begin_pass(const DeviceWatch& watch, Nanoseconds now) noexcept;

  /// Seconds since the daemon's start, averaged over the engines of the class; never falls. `unsupported`
  /// until a client of the device has reported the class, `timeout` if the scans are late.
  Sample engine(EngineClass engine) const noexcept;

  /// Seconds in which the busiest class was busy, since the first pass; never falls. `unsupported` until a
  /// client of the device has reported a class: some drivers never do, such as xe in a virtual machine.
  Sample busiest() const noexcept;

  /// Share of the time between the last two scans in which the busiest class was busy, at most 1.
  /// `unsupported` as busiest(), and before the second scan.
  Sample utilization() const noexcept;

  /// The same for one class. `unsupported` until a client of the device has reported it.
  Sample utilization(EngineClass engine) const noexcept;

 private:
  void advance(const DrmUse& use) noexcept;
  Sample known(const std::optional<double>& value) const noexcept;

  std::shared_ptr<const DrmUse> use_;
  std::optional<double> busiest_;
  std::optional<double> utilization_;
  EngineSeconds shares_{};
  EngineSeconds last_{};
  Nanoseconds last_scan_{};
  Nanoseconds last_observed_{};
  bool has_last_ = false;
  bool is_late_ = false;
};

}  // namespace gpumeter::fdinfo
