#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "collectors/amd/kfd/topology.hpp"
#include "collectors/api/series.hpp"

/// Partitions of Instincts from MI300 on. SPX is the whole card; DPX, TPX and QPX are two, three and four
/// parts; CPX is one part for each compute die. NPS1 to NPS8 give the number of parts into which the memory
/// is interleaved (kernel 6.12, amdgpu_gfx.c and amdgpu_gmc.c). The files and the topology come from the
/// driver's memory, so reading them does not wake the card.
namespace gpumeter::amd {

/// The modes in force, in lower case: "cpx", "nps4". Empty: the card cannot be divided.
struct PartitionModes {
  std::string compute, memory;
};
PartitionModes partition_modes(const std::string& card_folder);

/// "cpx/nps4", or the part of it that is known.
std::string to_string(const PartitionModes& modes);

/// One part of a card and its node in the compute driver.
struct AmdPartition {
  Partition partition;
  std::optional<KfdNode> node;
};

/// The parts of a divided card, by number; empty for a card that is not divided. Their count is the larger of
/// the topology's nodes and `reported`, the firmware's number (gpu_metrics' num_partition). The topology may
/// be incomplete, since a process may lack access to some nodes.
std::vector<AmdPartition> partitions_of(const PartitionModes& modes,
                                        const std::vector<KfdNode>& nodes_of_card, std::size_t reported);

}  // namespace gpumeter::amd
