#include "programs/benchmark/opencl/device.hpp"

#include <CL/cl_ext.h>

#include "base/text.hpp"

namespace gpumeter::benchmark::opencl {
namespace {

// cl_nv_device_attribute_query; Khronos' header of 2023 lacks these two.
constexpr cl_device_info kPciSlotNv = 0x4009;    // CL_DEVICE_PCI_SLOT_ID_NV: device << 3 | function
constexpr cl_device_info kPciBusNv = 0x4008;     // CL_DEVICE_PCI_BUS_ID_NV
constexpr cl_device_info kPciDomainNv = 0x400A;  // CL_DEVICE_PCI_DOMAIN_ID_NV

template <class T>
std::optional<T> info(const Api& api, cl_device_id device, cl_device_info name) {
  T value{};
  if (api.clGetDeviceInfo(device, name, sizeof value, &value, nullptr) != CL_SUCCESS) return std::nullopt;
  return value;
}

std::string device_text(const Api& api, cl_device_id device, cl_device_info name) {
  std::size_t size = 0;
  if (api.clGetDeviceInfo(device, name, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  if (api.clGetDeviceInfo(device, name, size, text.data(), nullptr) != CL_SUCCESS) return {};
  return std::string(trimmed(text.c_str()));  // NOLINT(readability-redundant-string-cstr): up to the NUL
}

std::string platform_text(const Api& api, cl_platform_id platform) {
  char text[256] = {};
  api.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof text - 1, text, nullptr);
  return text;
}

std::optional<pci::Address> address_by_khronos(const Api& api, cl_device_id device) {
  const auto bus = info<cl_device_pci_bus_info_khr>(api, device, CL_DEVICE_PCI_BUS_INFO_KHR);
  if (!bus) return std::nullopt;
  return pci::Address{bus->pci_domain, static_cast<std::uint8_t>(bus->pci_bus),
                      static_cast<std::uint8_t>(bus->pci_device),
                      static_cast<std::uint8_t>(bus->pci_function)};
}

std::optional<pci::Address> address_by_nvidia(const Api& api, cl_device_id device) {
  const auto bus = info<cl_uint>(api, device, kPciBusNv);
  const auto slot = info<cl_uint>(api, device, kPciSlotNv);
  if (!bus || !slot) return std::nullopt;
  return pci::Address{info<cl_uint>(api, device, kPciDomainNv).value_or(0), static_cast<std::uint8_t>(*bus),
                      static_cast<std::uint8_t>(*slot >> 3U), static_cast<std::uint8_t>(*slot & 7U)};
}

/// Without a domain: AMD's extension has none.
std::optional<pci::Address> address_by_amd(const Api& api, cl_device_id device) {
  const auto found = info<cl_device_topology_amd>(api, device, CL_DEVICE_TOPOLOGY_AMD);
  if (!found || found->raw.type != CL_DEVICE_TOPOLOGY_TYPE_PCIE_AMD) return std::nullopt;
  return pci::Address{0, static_cast<std::uint8_t>(found->pcie.bus),
                      static_cast<std::uint8_t>(found->pcie.device),
                      static_cast<std::uint8_t>(found->pcie.function)};
}

std::optional<pci::Address> address_of(const Api& api, const Device& device) {
  if (device.has("cl_khr_pci_bus_info")) return address_by_khronos(api, device.id);
  if (device.has("cl_nv_device_attribute_query")) return address_by_nvidia(api, device.id);
  if (device.has("cl_amd_device_attribute_query")) return address_by_amd(api, device.id);
  return std::nullopt;
}

Device describe(const Api& api, cl_platform_id platform, cl_device_id id) {
  Device device;
  device.platform = platform;
  device.id = id;
  device.platform_name = platform_text(api, platform);
  device.name = device_text(api, id, CL_DEVICE_NAME);
  device.driver = device_text(api, id, CL_DRIVER_VERSION);
  device.extensions = device_text(api, id, CL_DEVICE_EXTENSIONS);
  device.is_cpu = (info<cl_device_type>(api, id, CL_DEVICE_TYPE).value_or(0) & CL_DEVICE_TYPE_CPU) != 0;
  device.memory = info<cl_ulong>(api, id, CL_DEVICE_GLOBAL_MEM_SIZE).value_or(0);
  device.largest_buffer = info<cl_ulong>(api, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE).value_or(0);
  device.local_memory = info<cl_ulong>(api, id, CL_DEVICE_LOCAL_MEM_SIZE).value_or(0);
  device.largest_group = info<std::size_t>(api, id, CL_DEVICE_MAX_WORK_GROUP_SIZE).value_or(1);
  device.address = address_of(api, device);
  return device;
}

}  // namespace

bool Device::has(std::string_view extension) const noexcept {
  std::string_view rest = extensions;
  while (!rest.empty()) {
    if (take_until(rest, ' ') == extension) return true;
  }
  return false;
}

std::vector<Device> devices(const Api& api) {
  std::vector<Device> all;
  cl_uint platform_count = 0;
  if (api.clGetPlatformIDs(0, nullptr, &platform_count) != CL_SUCCESS || platform_count == 0) return all;
  std::vector<cl_platform_id> platforms(platform_count);
  if (api.clGetPlatformIDs(platform_count, platforms.data(), nullptr) != CL_SUCCESS) return all;
  for (cl_platform_id platform : platforms) {
    cl_uint count = 0;
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(count);
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr) != CL_SUCCESS) continue;
    for (cl_device_id id : ids) all.push_back(describe(api, platform, id));
  }
  return all;
}

}  // namespace gpumeter::benchmark::opencl
