#include "collectors/intel/link.hpp"

#include <filesystem>

#include "collectors/sources/sysfs.hpp"

namespace gpumeter::intel {
namespace {

constexpr int kLevels = 2;                 // the card's switch: a downstream and an upstream port
constexpr std::uint32_t kBridge = 0x0604;  // base class and sub-class of a PCI-to-PCI bridge

/// The highest link of a port; its current link if the file of the highest is missing.
struct Link {
  std::optional<int> generation;
  std::int64_t lanes = 0;
};

Link link_of(const std::string& folder) {
  const auto text = [&](const char* what) {
    const std::string highest = sysfs::read_text(folder + "/max_link_" + what);
    return highest.empty() ? sysfs::read_text(folder + "/current_link_" + what) : highest;
  };
  return {pci::link_generation(text("speed")), sysfs::parse_integer(text("width")).value_or(0)};
}

bool is_link(const Link& link) noexcept { return link.generation && link.lanes > 0; }
bool is_internal(const Link& link) noexcept { return link.generation == 1 && link.lanes == 1; }

std::optional<pci::Function> parent_of(const pci::Function& function) {
  return pci::read_function(std::filesystem::path(function.path).parent_path().string());
}

}  // namespace

std::optional<std::string> slot_port(const pci::Function& function) {
  pci::Function port = function;
  for (int level = 0; level <= kLevels; ++level) {
    const Link link = link_of(port.path);
    if (!is_link(link)) return std::nullopt;
    if (!is_internal(link)) return port.path;
    const std::optional<pci::Function> above = parent_of(port);
    if (!above || above->vendor != function.vendor || above->class_code >> 8 != kBridge) return std::nullopt;
    port = *above;
  }
  return std::nullopt;
}

}  // namespace gpumeter::intel
