#pragma once

#include <cstddef>
#include <span>
#include <string_view>

/// How far apart the entries of a process list lie. The headers of CUDA 12.2 and 12.3 have a longer struct
/// than those before and after, for functions of the same name, and early drivers of their time (535) write
/// it (gpuopenanalytics/pynvml#48): read at the wrong distance, memory becomes a pid.
namespace gpumeter::nvidia {

/// What a list is filled with before the driver is asked.
inline constexpr std::byte kUntouched{0xA5};

/// Whether a driver of this version may write the longer one: branches 535 to 545.
bool may_be_wide(std::string_view driver_version) noexcept;

/// sizeof(ProcessInfo) or sizeof(WideProcessInfo), by what was written into `list`; 0: it is neither.
std::size_t stride_of(std::span<const std::byte> list, std::size_t count) noexcept;

}  // namespace gpumeter::nvidia
