#pragma once

#include "base/options.hpp"
#include "collectors/api/part.hpp"

namespace gpumeter::host {

struct PowerSettings {
  bool workload_energy = false;  ///< gpu_workload_host_energy_joules_total
  bool operator==(const PowerSettings&) const = default;
};

/// Power and energy of the machine around its GPUs, from files that no GPU's driver serves: powercap (RAPL),
/// ACPI power meters, AMD's HSMP, Cray's pm_counters, and power supplies in hwmon. Sources describe the same
/// processors, so only the first that is readable has machine_power_watts. A sensor that comes later is
/// found at the next turn. A sensor's file may block in its driver.
extern const PartEntry kPower;

}  // namespace gpumeter::host
