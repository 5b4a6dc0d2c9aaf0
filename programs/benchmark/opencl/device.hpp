#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/sources/pci.hpp"
#include "programs/benchmark/opencl/api.hpp"

namespace gpumeter::benchmark::opencl {

/// A device of a driver.
struct Device {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  std::string platform_name;
  std::string name;
  std::string driver;      ///< version of the driver
  std::string extensions;  ///< separated by blanks
  bool is_cpu = false;
  std::optional<pci::Address> address;
  std::uint64_t memory = 0;          ///< bytes
  std::uint64_t largest_buffer = 0;  ///< bytes
  std::uint64_t local_memory = 0;    ///< bytes of a work-group
  std::size_t largest_group = 0;     ///< work-items

  bool has(std::string_view extension) const noexcept;
};

/// All devices of all drivers. Loads the drivers. Address: cl_khr_pci_bus_info, or the vendors' older
/// extensions cl_nv_device_attribute_query and cl_amd_device_attribute_query.
std::vector<Device> devices(const Api& api);

}  // namespace gpumeter::benchmark::opencl
