#pragma once

#include <cstddef>
#include <span>
#include <string_view>

/// Layouts and ids that differ between drivers under the same names. Any thread.
namespace gpumeter::nvidia {

/// Returns the id that a driver of this version has for a field of nvml.h 13.1. Drivers from 575 to 580.65
/// have the clock event counters 269 to 271 at 251 to 253. Under the new ids they return a setting of power
/// smoothing. Returns 0 for drivers between 580.65 and 580.82: no header of theirs is known, and a wrong id
/// would show a setting as a counter.
unsigned throttle_field(unsigned field, std::string_view driver_version) noexcept;

// Distance between the entries of a process list. The headers of CUDA 12.2 and 12.3 have a longer struct than
// earlier and later headers, for functions of the same name. Early drivers of that period (535) write it
// (gpuopenanalytics/pynvml#48). At the wrong distance, memory is read as a pid.

/// Fills a list before the call to the driver.
inline constexpr std::byte kUntouched{0xA5};

/// Whether a driver of this version may write the longer struct: branches 535 to 545.
bool may_be_wide(std::string_view driver_version) noexcept;

/// Returns sizeof(ProcessInfo) or sizeof(WideProcessInfo), by the bytes written into `list`; 0 if neither
/// fits.
std::size_t stride_of(std::span<const std::byte> list, std::size_t count) noexcept;

}  // namespace gpumeter::nvidia
