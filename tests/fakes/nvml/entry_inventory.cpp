#include <cstdio>

#include "tests/fakes/nvml/call.hpp"

// What a board is and what it is set to; sessions of the video engines.

namespace gpumeter::fake_nvml {
namespace {

constexpr const char* kInforoms[] = {"inforom_oem", "inforom_ecc", "inforom_power"};  // nvmlInforomObject_t

/// Reads one number into a struct whose version is 1.
template <class Struct, class Number_>
unsigned versioned(const char* function, nvml::Device device, Struct* out, Number_ Struct::*member,
                   const char* path) {
  return on_device(function, device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    if (out->version != nvml::version_of<Struct>(1)) return nvml::kArgumentVersionMismatch;
    return call.read(path, &(out->*member));
  });
}

}  // namespace

#define NUMBER_GETTER(function, path)                                      \
  FAKE_NVML_EXPORT unsigned function(nvml::Device device, unsigned* out) { \
    return one_number(#function, device, path, out);                       \
  }
NUMBER_GETTER(nvmlDeviceGetBrand, "brand")
NUMBER_GETTER(nvmlDeviceGetBoardId, "board_id")
NUMBER_GETTER(nvmlDeviceGetMultiGpuBoard, "multi_gpu_board")
NUMBER_GETTER(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie.gpu_max_generation")
NUMBER_GETTER(nvmlDeviceGetAccountingMode, "modes.accounting")

FAKE_NVML_EXPORT unsigned nvmlSystemGetCudaDriverVersion(int* out) {
  Call call("nvmlSystemGetCudaDriverVersion");
  if (const unsigned error = call.enter()) return error;
  if (out == nullptr) return nvml::kInvalidArgument;
  const Value version = call.at("system.cuda_version");
  if (version.error != nvml::kSuccess) return version.error;
  int major = 0, minor = 0;
  if (std::sscanf(version.text.c_str(), "%d.%d", &major, &minor) != 2) return nvml::kUnknown;
  *out = 1000 * major + 10 * minor;
  return nvml::kSuccess;
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetBoardPartNumber(nvml::Device device, char* out, unsigned size) {
  return on_device("nvmlDeviceGetBoardPartNumber", device,
                   [&](const Call& call) { return call.read_text("board_part_number", out, size); });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetInforomVersion(nvml::Device device, unsigned object, char* out,
                                                      unsigned size) {
  return on_device("nvmlDeviceGetInforomVersion", device, [&](const Call& call) -> unsigned {
    if (object >= std::size(kInforoms)) return nvml::kInvalidArgument;
    return call.read_text(kInforoms[object], out, size);
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetPciInfoExt(nvml::Device device, nvml::PciInfoExt* out) {
  return on_device("nvmlDeviceGetPciInfoExt", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    if (out->version != nvml::version_of<nvml::PciInfoExt>(1)) return nvml::kArgumentVersionMismatch;
    return first_error(call.read("pci.base_class", &out->base_class),
                       call.read("pci.sub_class", &out->sub_class));
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetPdi(nvml::Device device, nvml::Pdi* out) {
  return versioned("nvmlDeviceGetPdi", device, out, &nvml::Pdi::value, "pdi");
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetAddressingMode(nvml::Device device, nvml::AddressingMode* out) {
  return versioned("nvmlDeviceGetAddressingMode", device, out, &nvml::AddressingMode::mode,
                   "modes.addressing");
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetCapabilities(nvml::Device device, nvml::Capabilities* out) {
  return versioned("nvmlDeviceGetCapabilities", device, out, &nvml::Capabilities::mask, "capabilities");
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetC2cModeInfoV(nvml::Device device, nvml::C2cMode* out) {
  return one_number("nvmlDeviceGetC2cModeInfoV", device, "modes.c2c",
                    out == nullptr ? nullptr : &out->is_enabled);
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetMaxCustomerBoostClock(nvml::Device device, unsigned clock,
                                                             unsigned* out) {
  return on_device("nvmlDeviceGetMaxCustomerBoostClock", device, [&](const Call& call) -> unsigned {
    if (clock != nvml::kClockGraphics) return nvml::kNotSupported;
    return call.read("clocks.customer_boost", out);
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetConfComputeProtectedMemoryUsage(nvml::Device device,
                                                                       nvml::Memory* out) {
  return on_device("nvmlDeviceGetConfComputeProtectedMemoryUsage", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    return first_error(call.read("protected_memory.total", &out->total),
                       call.read("protected_memory.used", &out->used),
                       call.read("protected_memory.free", &out->free));
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetEncoderStats(nvml::Device device, unsigned* sessions, unsigned* rate,
                                                    unsigned* latency) {
  return on_device("nvmlDeviceGetEncoderStats", device, [&](const Call& call) {
    return first_error(call.read("encoder.sessions", sessions), call.read("encoder.frames_per_second", rate),
                       call.read("encoder.latency_usec", latency));
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetFBCStats(nvml::Device device, nvml::CaptureStats* out) {
  return on_device("nvmlDeviceGetFBCStats", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    return first_error(call.read("capture.sessions", &out->sessions),
                       call.read("capture.frames_per_second", &out->frames_per_second),
                       call.read("capture.latency_usec", &out->latency_usec));
  });
}

}  // namespace gpumeter::fake_nvml
