#include "collectors/nvidia/platform.hpp"

#include <algorithm>
#include <span>
#include <string>

namespace gpumeter::nvidia {
namespace {

bool is_printable(unsigned char byte) noexcept { return byte > ' ' && byte <= '~'; }

/// The text in a field of fixed length; empty if it holds anything but printable ASCII.
std::string text_in(std::span<const unsigned char> field) {
  const auto end = std::ranges::find(field, 0);
  return std::all_of(field.begin(), end, is_printable) ? std::string(field.begin(), end) : std::string();
}

// "For non-baseboard products, this ID would always be 0" (nvml.h at nvmlDeviceGetModuleId), so 0 says
// nothing.
std::vector<Label> module_label(NvmlCaller& gpu) {
  const unsigned module = number_of<&F::nvmlDeviceGetModuleId>(gpu).value_or(0);
  if (module == 0) return {};
  return {{"module", std::to_string(module)}};
}

}  // namespace

bool has_own_memory(NvmlCaller& gpu) {
  nvml::MemoryV2 present{};
  nvml::Memory former{};
  const unsigned first = gpu.call<&F::nvmlDeviceGetMemoryInfo_v2>(&present);
  const unsigned second = gpu.call<&F::nvmlDeviceGetMemoryInfo>(&former);
  const bool is_lacking_first = first == nvml::kNotSupported || first == nvml::kFunctionNotFound;
  return !is_lacking_first || second != nvml::kNotSupported;
}

std::vector<Label> platform_labels(NvmlCaller& gpu) {
  nvml::PlatformInfo platform{};
  if (gpu.call<&F::nvmlDeviceGetPlatformInfo>(&platform) != nvml::kSuccess) return module_label(gpu);
  std::vector<Label> labels;
  if (std::string chassis = text_in(platform.chassis_serial); !chassis.empty())
    labels.push_back({"chassis_serial", std::move(chassis)});
  labels.push_back({"slot", std::to_string(platform.slot)});
  labels.push_back({"tray", std::to_string(platform.tray)});
  labels.push_back({"host", std::to_string(platform.host)});
  labels.push_back({"module", std::to_string(platform.module)});
  return labels;
}

}  // namespace gpumeter::nvidia
