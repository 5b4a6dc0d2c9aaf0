#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collectors/api/device.hpp"
#include "collectors/api/series.hpp"

namespace gpumeter::neuron {

/// The numbers in a `connected_devices` file: "1, 3, 4, 12". Other texts between commas are left out.
std::vector<int> device_numbers(std::string_view list);

/// The uuid of a device from its folder: its serial number, or its name ("neuron0") without one.
std::string uuid_of(const std::string& folder);

/// The path of a node that may be directly below the folder or anywhere below it; empty if there is none.
std::string find_node(const std::string& folder, std::string_view name);

/// gpu_topology_info of each neighbour that the driver lists.
std::vector<SeriesSpec> connected_devices(const DeviceInfo& info);

}  // namespace gpumeter::neuron
