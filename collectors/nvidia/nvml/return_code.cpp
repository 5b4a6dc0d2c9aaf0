#include "collectors/nvidia/nvml/return_code.hpp"

#include "collectors/nvidia/nvml/constants.hpp"

namespace gpumeter::nvidia {

Blame blame_of(unsigned result) noexcept {
  switch (result) {
    case nvml::kSuccess:
      return Blame::nobody;
    case nvml::kGpuIsLost:
    case nvml::kResetRequired:
    case nvml::kGpuNotFound:
      return Blame::device;
    case nvml::kUninitialized:
    case nvml::kDriverNotLoaded:
    case nvml::kLibRmVersionMismatch:
      return Blame::library;
    default:
      return Blame::call;
  }
}

// NOT_FOUND and NO_DATA mean "nothing at this time": the next pass reads again. A wrong struct version counts
// as unsupported by the library, as does a function that exists but is empty.
ReadStatus status_of(unsigned result) noexcept {
  switch (result) {
    case nvml::kSuccess:
      return ReadStatus::ok;
    case nvml::kNotSupported:
    case nvml::kFunctionNotFound:
    case nvml::kArgumentVersionMismatch:
    case nvml::kDeprecated:
    case nvml::kInvalidArgument:
      return ReadStatus::unsupported;
    case nvml::kNoPermission:
      return ReadStatus::denied;
    case nvml::kTimeout:
      return ReadStatus::timeout;
    case nvml::kGpuIsLost:
    case nvml::kResetRequired:
    case nvml::kGpuNotFound:
    case nvml::kUninitialized:
    case nvml::kDriverNotLoaded:
    case nvml::kLibRmVersionMismatch:
      return ReadStatus::gone;
    default:
      return ReadStatus::failed;
  }
}

bool is_passing_trouble(unsigned result) noexcept {
  return result == nvml::kUnknown || result == nvml::kTimeout || result == nvml::kNotReady ||
         result == nvml::kInvalidState || result == nvml::kMemory;
}

// Containers lose their devices when systemd reloads its units, and then get this error.
std::string reason_of_init(unsigned result) {
  if (result != nvml::kUnknown) return reason_of(result);
  return "the driver gives no reason (NVML error 999). In a container: access to /dev/nvidia* was lost, "
         "restart the container; otherwise see the NVRM lines in the kernel log";
}

std::string reason_of(unsigned result) {
  switch (result) {
    case nvml::kDriverNotLoaded:
      return "the kernel module is not loaded: modprobe nvidia";
    case nvml::kLibRmVersionMismatch:
      return "reboot needed: the driver's library and its kernel module have different versions, as after "
             "an "
             "upgrade; unloading and loading the module also works";
    case nvml::kNoPermission:
    case nvml::kOperatingSystem:
      return "/dev/nvidiactl or /dev/nvidia* may not be opened: see their permissions and the service's "
             "DeviceAllow=";
    case nvml::kUninitialized:
      return "NVML was shut down while in use";
    case nvml::kGpuIsLost:
      return "a GPU has fallen off the bus: reset it (nvidia-smi --gpu-reset) or reboot";
    case nvml::kResetRequired:
      return "a GPU requires a reset: nvidia-smi --gpu-reset";
    default:
      return "NVML error " + std::to_string(result);
  }
}

}  // namespace gpumeter::nvidia
