#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "collectors/amd/kfd/topology.hpp"
#include "collectors/api/series.hpp"

/// How Instincts from MI300 on are divided: SPX is the card as one, DPX, TPX and QPX two, three and four
/// parts, CPX one for each compute die; NPS1 to NPS8 is into how many parts its memory is interleaved
/// (kernel 6.12, amdgpu_gfx.c and amdgpu_gmc.c). Files and topology come out of the driver's memory; nothing
/// wakes.
namespace gpumeter::amd {

/// The modes in force, in lower case: "cpx", "nps4". Empty: the card cannot be divided.
struct PartitionModes {
  std::string compute, memory;
};
PartitionModes partition_modes(const std::string& card_folder);

/// "cpx/nps4", or what there is of it.
std::string to_string(const PartitionModes& modes);

/// One part of a card and its node in the compute driver.
struct AmdPartition {
  Partition partition;
  std::optional<KfdNode> node;
};

/// The parts of a divided card by their number; none of a card that is whole. As many as its topology has
/// nodes, or `told` by its firmware (gpu_metrics' num_partition), whichever is more: a process may not see
/// all nodes.
std::vector<AmdPartition> partitions_of(const PartitionModes& modes,
                                        const std::vector<KfdNode>& nodes_of_card, std::size_t told);

}  // namespace gpumeter::amd
