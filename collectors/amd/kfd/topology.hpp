#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectors/sources/pci.hpp"

/// The compute driver's GPUs, in class/kfd/kfd/topology of sysfs (kernel 6.12,
/// kfd_topology.c): readable by everybody, out of the driver's memory, so that nothing wakes. /dev/kfd is
/// never opened.
namespace gpumeter::amd {

/// One GPU node: a card, or each partition of a card that is divided.
struct KfdNode {
  std::uint32_t gpu_id = 0;     ///< the compute driver's number of it, as in class/kfd/kfd/proc
  pci::Address address;         ///< of a partition with a function number that is not on the bus
  std::uint64_t unique_id = 0;  ///< of the card; 0: the chip has none, or the kernel is older
  std::uint16_t device = 0;     ///< PCI device ID
  unsigned partition = 0;       ///< which one of a divided card it is
  int render_minor = 0;         ///< N of /dev/dri/renderDN; 0: none
  int target = 0;               ///< gfx_target_version: 90402 is gfx942; 0: the kernel is older
  int compute_units = 0;
  int clock_megahertz = 0;         ///< the highest of its compute units
  std::uint64_t memory_bytes = 0;  ///< what it can allocate; 0: unknown
  int memory_bits = 0;             ///< width of the memory bus
  int memory_clock_megahertz = 0;  ///< the highest

  bool operator==(const KfdNode&) const = default;
};

/// Every GPU node, in the driver's order. Empty where there is no compute driver.
std::vector<KfdNode> kfd_nodes(const std::string& sysfs_root);

/// What a card is looked for by.
struct KfdKey {
  pci::Address address;
  std::uint16_t device = 0;
  std::optional<int> render_minor;
};

/// The nodes of a card, of a whole one a single one: that with its address, else with its render node, and
/// all that share the unique_id of that one.
std::vector<KfdNode> kfd_nodes_of(const std::vector<KfdNode>& nodes, const KfdKey& key);

/// The card as one node, its partitions' compute units and memory counted together; nullopt: it has no node.
std::optional<KfdNode> kfd_whole(const std::vector<KfdNode>& nodes_of_card);

/// "gfx942" of 90402, as compilers call it; empty of 0.
std::string architecture_name(int target);

/// What a card can do at the most.
enum class Peak : std::uint8_t { fp32, fp16, bf16, memory };

/// Dense operations per second; of `memory`, bytes per second. nullopt: not known of the architecture, or the
/// driver does not report the clock.
std::optional<double> peak_of(const KfdNode& card, Peak peak) noexcept;

}  // namespace gpumeter::amd
