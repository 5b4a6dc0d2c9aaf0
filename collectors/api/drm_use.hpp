#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/text.hpp"

namespace gpumeter {

/// A kind of engine, for all drivers that report their clients in /proc/PID/fdinfo. `video` both decodes and
/// encodes: the driver does not tell the two apart.
enum class EngineClass : std::uint8_t { graphics, compute, copy, video, decode, encode, jpeg, video_enhance };
inline constexpr std::size_t kEngineClassCount = 8;

/// The label value of gpu_engine_busy_seconds_total{engine}.
inline constexpr EnumNames<EngineClass, kEngineClassCount> kEngineClassNames = {
    {{EngineClass::graphics, "graphics"},
     {EngineClass::compute, "compute"},
     {EngineClass::copy, "copy"},
     {EngineClass::video, "video"},
     {EngineClass::decode, "decode"},
     {EngineClass::encode, "encode"},
     {EngineClass::jpeg, "jpeg"},
     {EngineClass::video_enhance, "video_enhance"}}};

/// Busy time by engine class since the daemon's start, in seconds, averaged over the engines of the class
/// (drm-engine-capacity-*); never falls. If a driver has several kinds of engines in a class, the busiest
/// counts. nullopt: no client of the device has reported the class yet.
using EngineSeconds = std::array<std::optional<double>, kEngineClassCount>;

/// A process's use of one DRM device: the sum over its clients. Each client counts once on the machine.
struct DrmProcess {
  int pid = 0;
  std::uint64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat
  EngineSeconds busy_seconds;
  std::optional<double> device_bytes;  ///< resident in the device's own memory (vram, local, vramN)
  std::optional<double> system_bytes;  ///< resident in the host's memory for the device (gtt, system, memory)
  double shared_device_bytes = 0;      ///< the part of device_bytes that other clients may also count
  double shared_system_bytes = 0;      ///< the same for system_bytes
};

/// The use of one DRM device at the end of a scan of /proc. Immutable: any thread.
struct DrmUse {
  Nanoseconds scanned_at{};  ///< CLOCK_MONOTONIC; the values are of this moment
  /// Time over which busy_seconds is complete, since the daemon's start; never falls.
  Nanoseconds observed{};
  EngineSeconds busy_seconds;         ///< of all processes that were readable, also of those that have ended
  std::vector<DrmProcess> processes;  ///< that hold the device open, by pid
  unsigned inaccessible = 0;          ///< processes of the machine whose descriptors may not be read
};

/// The machine's one scanner of /proc/PID/fdinfo, as collectors see it. Thread-safe; no call blocks.
class DrmUsers {
 public:
  virtual ~DrmUsers() = default;

  /// Asks for scans of a device, at least once in `every`, for as long as the handle lives. `pdev` is the PCI
  /// address as fdinfo's drm-pdev has it, or the name of a platform device without one.
  virtual std::shared_ptr<void> watch(std::string_view device, Nanoseconds every) = 0;

  /// The last scan of a watched device; null before the first, and where /proc/PID/fdinfo is not available.
  virtual std::shared_ptr<const DrmUse> use_of(std::string_view device) const = 0;

  /// A workload has just begun: scans at once, unless such scans would then take more than 1 % of a
  /// processor.
  virtual void scan_soon() {}
};

}  // namespace gpumeter
