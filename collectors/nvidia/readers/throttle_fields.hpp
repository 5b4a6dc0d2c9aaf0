#pragma once

#include <string_view>

/// The ids of the throttle counters that NVIDIA has renumbered.
namespace gpumeter::nvidia {

/// The id that a driver of this version has for a field of nvml.h 13.1. Drivers from 575 to 580.65 have the
/// clock event counters 269 to 271 at 251 to 253, and read a setting of power smoothing under the new ids. 0
/// for those between 580.65 and 580.82: no header of theirs is known, and a wrong id would show a setting as
/// a counter. Any thread.
unsigned throttle_field(unsigned field, std::string_view driver_version) noexcept;

}  // namespace gpumeter::nvidia
