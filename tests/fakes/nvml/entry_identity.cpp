#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/fakes/nvml/call.hpp"

// The identity of a device, and its modes.

namespace gpumeter::fake_nvml {

#define TEXT_GETTER(function, path)                                                                         \
  FAKE_NVML_EXPORT unsigned function(nvml::Device device, char* out, unsigned size) {                       \
    return on_device(#function, device, [&](const Call& call) { return call.read_text(path, out, size); }); \
  }
#define NUMBER_GETTER(function, path)                                      \
  FAKE_NVML_EXPORT unsigned function(nvml::Device device, unsigned* out) { \
    return one_number(#function, device, path, out);                       \
  }
#define TWO_NUMBERS_GETTER(function, path1, path2)                                        \
  FAKE_NVML_EXPORT unsigned function(nvml::Device device, unsigned* one, unsigned* two) { \
    return on_device(#function, device, [&](const Call& call) {                           \
      return first_error(call.read(path1, one), call.read(path2, two));                   \
    });                                                                                   \
  }

TEXT_GETTER(nvmlDeviceGetUUID, "uuid")
TEXT_GETTER(nvmlDeviceGetName, "name")
TEXT_GETTER(nvmlDeviceGetSerial, "serial")
TEXT_GETTER(nvmlDeviceGetVbiosVersion, "vbios")
TEXT_GETTER(nvmlDeviceGetInforomImageVersion, "inforom")

NUMBER_GETTER(nvmlDeviceGetMinorNumber, "minor")
NUMBER_GETTER(nvmlDeviceGetArchitecture, "architecture")
NUMBER_GETTER(nvmlDeviceGetNumGpuCores, "cores")
NUMBER_GETTER(nvmlDeviceGetMemoryBusWidth, "memory_bus_width")
NUMBER_GETTER(nvmlDeviceGetNumaNodeId, "numa_node")
NUMBER_GETTER(nvmlDeviceGetModuleId, "module_id")
NUMBER_GETTER(nvmlDeviceGetVirtualizationMode, "virtualization")
NUMBER_GETTER(nvmlDeviceGetPersistenceMode, "modes.persistence")
NUMBER_GETTER(nvmlDeviceGetComputeMode, "modes.compute")
NUMBER_GETTER(nvmlDeviceGetDisplayActive, "modes.display_active")
TWO_NUMBERS_GETTER(nvmlDeviceGetEccMode, "modes.ecc", "modes.ecc_pending")
TWO_NUMBERS_GETTER(nvmlDeviceGetMigMode, "mig.mode", "mig.mode_pending")

FAKE_NVML_EXPORT unsigned nvmlDeviceGetGspFirmwareVersion(nvml::Device device, char* out) {
  constexpr std::size_t kBuffer = 64;  // NVML_GSP_FIRMWARE_VERSION_BUF_SIZE
  return on_device("nvmlDeviceGetGspFirmwareVersion", device,
                   [&](const Call& call) { return call.read_text("gsp_firmware", out, kBuffer); });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetCudaComputeCapability(nvml::Device device, int* major, int* minor) {
  return on_device("nvmlDeviceGetCudaComputeCapability", device, [&](const Call& call) -> unsigned {
    if (major == nullptr || minor == nullptr) return nvml::kInvalidArgument;
    const Value value = call.at("compute_capability");
    if (value.error != nvml::kSuccess) return value.error;
    return std::sscanf(value.text.c_str(), "%d.%d", major, minor) == 2 ? nvml::kSuccess : nvml::kUnknown;
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetPlatformInfo(nvml::Device device, nvml::PlatformInfo* out) {
  return on_device("nvmlDeviceGetPlatformInfo", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    if (out->version != nvml::version_of<nvml::PlatformInfo>(2)) return nvml::kArgumentVersionMismatch;
    const Value serial = call.at("platform.chassis_serial");
    if (serial.error != nvml::kSuccess) return serial.error;
    const unsigned version = out->version;
    *out = {};
    out->version = version;
    std::memcpy(out->chassis_serial, serial.text.data(),
                std::min(serial.text.size(), sizeof out->chassis_serial));
    return first_error(call.read("platform.slot", &out->slot), call.read("platform.tray", &out->tray),
                       call.read("platform.host", &out->host), call.read("platform.module", &out->module));
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetPciInfo_v3(nvml::Device device, nvml::PciInfo* out) {
  return on_device("nvmlDeviceGetPciInfo_v3", device, [&](const Call& call) -> unsigned {
    if (const unsigned error = call.read_address("pci.bus_id", out)) return error;
    call.read("pci.device_id", &out->device_id);
    call.read("pci.subsystem_id", &out->subsystem_id);
    return nvml::kSuccess;
  });
}

}  // namespace gpumeter::fake_nvml
