#include "collectors/intel/identity.hpp"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/text.hpp"
#include "collectors/files/discovery.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::intel {
namespace {

/// A line "\t56a5  DG2 [Arc A380]" of a vendor's part of pci.ids.
std::optional<std::string_view> name_in(std::string_view line, std::uint16_t device) {
  if (!line.starts_with('\t') || line.starts_with("\t\t")) return std::nullopt;
  line.remove_prefix(1);
  if (parse_number<std::uint16_t>(take_until(line, ' '), 16) != device) return std::nullopt;
  return trimmed(line);
}

bool starts_vendor(std::string_view line) {
  return !line.empty() && line.front() != '\t' && line.front() != '#';
}

/// "DG2 [Arc A380]" -> "Intel Arc A380": the name on the box is in brackets.
std::string marketing_name(std::string_view name) {
  const std::size_t open = name.rfind('[');
  if (open != std::string_view::npos && name.ends_with(']')) {
    name = name.substr(open + 1, name.size() - open - 2);
  }
  return name.starts_with("Intel") ? std::string(name) : "Intel " + std::string(name);
}

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

std::string product_name(const std::string& ids_file, std::uint16_t device) {
  std::ifstream file(ids_file);
  bool is_intel = false;
  for (std::string line; std::getline(file, line);) {
    if (starts_vendor(line)) {
      if (is_intel) return "";
      is_intel = line.starts_with("8086 ");
    }
    if (!is_intel) continue;
    if (const auto name = name_in(line, device)) return marketing_name(*name);
  }
  return "";
}

std::string number_name(std::uint16_t device) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "Intel %04x", device);
  return text.data();
}

DeviceInfo identify(const pci::Function& function, const drm::NodeMap& nodes, std::string model) {
  const drm::Nodes found = nodes.of(function);
  const std::optional<int> minor = found.render ? found.render : found.card;
  DeviceInfo info = files::described(function);
  info.vendor = "intel";
  info.model = std::move(model);
  info.minor = minor ? std::to_string(*minor) : "";
  return info;
}

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
