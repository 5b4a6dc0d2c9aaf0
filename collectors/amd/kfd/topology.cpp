#include "collectors/amd/kfd/topology.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::amd {
namespace {

/// The number in one "key value" line of a properties file. 0 if there is no such line; the driver also
/// writes 0 for an unknown value.
std::uint64_t property(std::string_view properties, std::string_view key) {
  while (!properties.empty()) {
    std::string_view line = take_until(properties, '\n');
    if (take_until(line, ' ') == key) return parse_number<std::uint64_t>(trimmed(line)).value_or(0);
  }
  return 0;
}

int small_property(std::string_view properties, std::string_view key) {
  constexpr std::uint64_t kMost = 1'000'000'000;  // above every real value: a larger one is invalid
  const std::uint64_t value = property(properties, key);
  return value <= kMost ? static_cast<int>(value) : 0;
}

/// location_id is bus << 8 | device << 3 | function.
pci::Address address_of(std::string_view properties) {
  const std::uint64_t location = property(properties, "location_id");
  return {static_cast<std::uint32_t>(property(properties, "domain")),
          static_cast<std::uint8_t>(location >> 8 & 0xff), static_cast<std::uint8_t>(location >> 3 & 0x1f),
          static_cast<std::uint8_t>(location & 0x7)};
}

/// A divided card's nodes have their number in the highest bits of location_id. Up to kernel 6.8 it is in the
/// function, which is 0 in the address of such a card (kernel 6.12, kfd_topology.c, kfd_topology_add_device).
unsigned partition_of(std::string_view properties) {
  const std::uint64_t location = property(properties, "location_id");
  return static_cast<unsigned>((location >> 28 & 0xf) | (location & 0x7));
}

/// nullopt: a node of processors, which has no SIMDs.
std::optional<KfdNode> read_node(const std::string& folder) {
  const std::string properties = sysfs::read_text(folder + "/properties");
  const int simds = small_property(properties, "simd_count");
  const int simds_per_unit = small_property(properties, "simd_per_cu");
  if (simds == 0 || simds_per_unit == 0) return std::nullopt;
  const std::string memory = sysfs::read_text(folder + "/mem_banks/0/properties");
  KfdNode node;
  node.gpu_id = static_cast<std::uint32_t>(sysfs::read_integer(folder + "/gpu_id").value_or(0));
  node.address = address_of(properties);
  node.unique_id = property(properties, "unique_id");
  node.device = static_cast<std::uint16_t>(small_property(properties, "device_id"));
  node.partition = partition_of(properties);
  node.render_minor = small_property(properties, "drm_render_minor");
  node.target = small_property(properties, "gfx_target_version");
  node.compute_units = simds / simds_per_unit;
  node.clock_megahertz = small_property(properties, "max_engine_clk_fcompute");
  node.memory_bytes = property(memory, "size_in_bytes");
  node.memory_bits = small_property(memory, "width");
  node.memory_clock_megahertz = small_property(memory, "mem_clk_max");
  return node;
}

// The render node is a weaker key. Its numbers in the topology and on the machine differ if one of them is
// seen from within a container. The chip must therefore match too.
const KfdNode* find(const std::vector<KfdNode>& nodes, const KfdKey& key) {
  const auto here = [&](const KfdNode& node) { return node.address == key.address; };
  const auto rendered = [&](const KfdNode& node) {
    return key.render_minor == node.render_minor && node.device == key.device;
  };
  auto found = std::find_if(nodes.begin(), nodes.end(), here);
  if (found == nodes.end()) found = std::find_if(nodes.begin(), nodes.end(), rendered);
  return found == nodes.end() ? nullptr : &*found;
}

const KfdNode& first_of_card(const std::vector<KfdNode>& nodes, const KfdNode& node) {
  const auto is_same = [&](const KfdNode& other) { return other.unique_id == node.unique_id; };
  return node.unique_id == 0 ? node : *std::find_if(nodes.begin(), nodes.end(), is_same);
}

/// The GPU node to which an xGMI link leads.
std::optional<const KfdNode*> linked_node(std::string_view link, const std::vector<KfdNode>& nodes) {
  constexpr int kXgmi = 11;  // kernel 6.12, kfd_crat.h, CRAT_IOLINK_TYPE_XGMI
  if (small_property(link, "type") != kXgmi) return std::nullopt;
  const int to = small_property(link, "node_to");
  const auto found =
      std::find_if(nodes.begin(), nodes.end(), [&](const KfdNode& node) { return node.number == to; });
  if (found == nodes.end()) return std::nullopt;
  return &*found;
}

}  // namespace

std::vector<KfdNode> kfd_nodes(const std::string& sysfs_root) {
  const std::string folder = sysfs_root + "/class/kfd/kfd/topology/nodes";
  std::vector<KfdNode> nodes;
  for (const std::string& name : sysfs::list(folder)) {
    std::optional<KfdNode> node = read_node(folder + "/" + name);
    if (!node) continue;
    node->number = parse_number<int>(name).value_or(0);
    nodes.push_back(*node);
  }
  return nodes;
}

// All partitions of a card have its links, so only those of its first node are read.
std::vector<KfdLink> kfd_links(const std::string& sysfs_root, const std::vector<KfdNode>& nodes) {
  std::vector<KfdLink> links;
  for (const KfdNode& node : nodes) {
    if (&first_of_card(nodes, node) != &node) continue;
    const std::string folder =
        sysfs_root + "/class/kfd/kfd/topology/nodes/" + std::to_string(node.number) + "/io_links";
    for (const std::string& name : sysfs::list(folder)) {
      const auto other = linked_node(sysfs::read_text(folder + "/" + name + "/properties"), nodes);
      if (!other) continue;
      const KfdLink link{node.address, first_of_card(nodes, **other).address};
      const bool is_new = std::find(links.begin(), links.end(), link) == links.end();
      if (link.from != link.to && is_new) links.push_back(link);
    }
  }
  return links;
}

std::vector<KfdNode> kfd_nodes_of(const std::vector<KfdNode>& nodes, const KfdKey& key) {
  const KfdNode* const found = find(nodes, key);
  if (found == nullptr) return {};
  std::vector<KfdNode> card = {*found};
  for (const KfdNode& node : nodes) {
    if (&node != found && node.unique_id != 0 && node.unique_id == found->unique_id) card.push_back(node);
  }
  return card;
}

std::optional<KfdNode> kfd_whole(const std::vector<KfdNode>& nodes_of_card) {
  if (nodes_of_card.empty()) return std::nullopt;
  KfdNode card = nodes_of_card.front();
  for (std::size_t i = 1; i < nodes_of_card.size(); ++i) {
    card.compute_units += nodes_of_card[i].compute_units;
    card.memory_bytes += nodes_of_card[i].memory_bytes;
  }
  return card;
}

std::string architecture_name(int target) {
  if (target <= 0) return "";
  std::array<char, 32> text{};  // the stepping is a hexadecimal digit: 90010 is gfx90a
  std::snprintf(text.data(), text.size(), "gfx%d%d%x", target / 10000, target / 100 % 100,
                static_cast<unsigned>(target % 100));
  return text.data();
}

}  // namespace gpumeter::amd
