#include "collectors/intel/identity.hpp"

#include <array>
#include <cstdio>
#include <fstream>
#include <optional>
#include <utility>

#include "base/text.hpp"

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
  DeviceInfo info;
  info.pci_address = pci::to_string(function.address);
  info.uuid = info.pci_address;
  info.vendor = "intel";
  info.model = std::move(model);
  info.driver = function.driver;
  info.minor = minor ? std::to_string(*minor) : "";
  info.numa_node = pci::numa_node(function);
  info.local_cpus = pci::local_cpus(function);
  info.source = function.path;
  return info;
}

}  // namespace gpumeter::intel
