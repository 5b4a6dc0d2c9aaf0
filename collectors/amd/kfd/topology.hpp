#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectors/sources/pci.hpp"

/// The compute driver's GPUs, from class/kfd/kfd/topology of sysfs (kernel 6.12, kfd_topology.c). The files
/// are readable by every user and come from the driver's memory, so reading them does not wake a card.
/// /dev/kfd is never opened.
namespace gpumeter::amd {

/// One GPU node: a card, or one partition of a divided card.
struct KfdNode {
  int number = 0;               ///< of its folder, by which links refer to it
  std::uint32_t gpu_id = 0;     ///< the compute driver's number of the node, as in class/kfd/kfd/proc
  pci::Address address;         ///< for a partition, with a function number that is not on the bus
  std::uint64_t unique_id = 0;  ///< of the card; 0: the chip has none, or the kernel is older
  std::uint16_t device = 0;     ///< PCI device ID
  unsigned partition = 0;       ///< number within a divided card
  int render_minor = 0;         ///< N of /dev/dri/renderDN; 0: none
  int target = 0;               ///< gfx_target_version: 90402 is gfx942; 0: the kernel is older
  int compute_units = 0;
  int clock_megahertz = 0;         ///< the highest of its compute units
  std::uint64_t memory_bytes = 0;  ///< memory that it can allocate; 0: unknown
  int memory_bits = 0;             ///< width of the memory bus
  int memory_clock_megahertz = 0;  ///< the highest

  bool operator==(const KfdNode&) const = default;
};

/// Every GPU node, in the driver's order. Empty if there is no compute driver.
std::vector<KfdNode> kfd_nodes(const std::string& sysfs_root);

/// Two cards with a direct xGMI link, by the addresses of their first nodes.
struct KfdLink {
  pci::Address from, to;

  bool operator==(const KfdLink&) const = default;
};

/// The links between cards, in the order of `nodes`, which are those of kfd_nodes(). Links between the
/// partitions of one card and links to processors are omitted.
std::vector<KfdLink> kfd_links(const std::string& sysfs_root, const std::vector<KfdNode>& nodes);

/// The keys by which a card is found.
struct KfdKey {
  pci::Address address;
  std::uint16_t device = 0;
  std::optional<int> render_minor;
};

/// The nodes of a card; a card that is not divided has one. The first is the node with the card's address, or
/// otherwise with its render node. Nodes with the same unique_id follow.
std::vector<KfdNode> kfd_nodes_of(const std::vector<KfdNode>& nodes, const KfdKey& key);

/// The card as one node, with the sums of its partitions' compute units and memory; nullopt: it has no node.
std::optional<KfdNode> kfd_whole(const std::vector<KfdNode>& nodes_of_card);

/// "gfx942" for 90402, the name that compilers use; empty for 0.
std::string architecture_name(int target);

/// The peak rates of a card.
enum class Peak : std::uint8_t { fp32, fp16, bf16, memory };

/// Dense operations per second; for `memory`, bytes per second. nullopt: unknown for the architecture, or the
/// driver does not report the clock.
std::optional<double> peak_of(const KfdNode& card, Peak peak) noexcept;

}  // namespace gpumeter::amd
