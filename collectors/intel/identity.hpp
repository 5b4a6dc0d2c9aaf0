#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collectors/api/collector.hpp"
#include "collectors/sources/drm.hpp"
#include "collectors/sources/pci.hpp"

/// The names and ids of an Intel GPU, from files that do not wake it.
namespace gpumeter::intel {

inline constexpr std::uint16_t kVendorIntel = 0x8086;

/// The product's name in the list of PCI ids (pci.ids), such as "Intel Arc A380" for "DG2 [Arc A380]". Empty:
/// no such file or no such device.
std::string product_name(const std::string& ids_file, std::uint16_t device);

/// "Intel 56a5": the model of a device that the list lacks.
std::string number_name(std::uint16_t device);

/// The kernel gives a card no number of its own, so its uuid is its PCI address.
DeviceInfo identify(const pci::Function& function, const drm::NodeMap& nodes, std::string model);

}  // namespace gpumeter::intel
