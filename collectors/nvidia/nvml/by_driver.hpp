#pragma once

#include <cstddef>
#include <span>
#include <string_view>

/// Layouts and ids that differ between drivers under the same names. Any thread.
namespace gpumeter::nvidia {

/// The id that a driver of this version has for a field of nvml.h 13.1. Drivers from 575 to 580.65 have the
/// clock event counters 269 to 271 at 251 to 253, and read a setting of power smoothing under the new ids. 0
/// for those between 580.65 and 580.82: no header of theirs is known, and a wrong id would show a setting as
/// a counter.
unsigned throttle_field(unsigned field, std::string_view driver_version) noexcept;

// How far apart the entries of a process list lie. The headers of CUDA 12.2 and 12.3 have a longer struct
// than those before and after, for functions of the same name, and early drivers of their time (535) write
// it (gpuopenanalytics/pynvml#48): read at the wrong distance, memory becomes a pid.

/// What a list is filled with before the driver is asked.
inline constexpr std::byte kUntouched{0xA5};

/// Whether a driver of this version may write the longer one: branches 535 to 545.
bool may_be_wide(std::string_view driver_version) noexcept;

/// sizeof(ProcessInfo) or sizeof(WideProcessInfo), by what was written into `list`; 0: it is neither.
std::size_t stride_of(std::span<const std::byte> list, std::size_t count) noexcept;

}  // namespace gpumeter::nvidia
