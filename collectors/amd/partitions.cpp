#include "collectors/amd/partitions.hpp"

#include <algorithm>

#include "collectors/sources/sysfs.hpp"

namespace gpumeter::amd {
namespace {

// MI300X and MI350X in CPX mode have eight; gpu_metrics has room for eight as well.
constexpr std::size_t kMost = 8;

// The driver writes "UNKNOWN" while the mode is not known.
std::string mode(const std::string& file) {
  std::string word = sysfs::read_text(file);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return word == "unknown" ? "" : word;
}

std::vector<Label> facts_of(const PartitionModes& modes, const std::optional<KfdNode>& node) {
  std::vector<Label> facts = {{"profile", modes.compute}};
  if (!modes.memory.empty()) facts.push_back({"memory_profile", modes.memory});
  if (!node) return facts;
  facts.push_back({"compute_units", std::to_string(node->compute_units)});
  if (node->render_minor != 0) facts.push_back({"minor", std::to_string(node->render_minor)});
  return facts;
}

}  // namespace

PartitionModes partition_modes(const std::string& card_folder) {
  return {mode(card_folder + "/current_compute_partition"), mode(card_folder + "/current_memory_partition")};
}

std::string to_string(const PartitionModes& modes) {
  return modes.compute + (modes.compute.empty() || modes.memory.empty() ? "" : "/") + modes.memory;
}

std::vector<AmdPartition> partitions_of(const PartitionModes& modes,
                                        const std::vector<KfdNode>& nodes_of_card, std::size_t reported) {
  if (modes.compute.empty() || modes.compute == "spx") return {};
  std::size_t count = reported;
  for (const KfdNode& node : nodes_of_card) count = std::max<std::size_t>(count, node.partition + 1U);
  std::vector<AmdPartition> parts(count <= kMost ? count : 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto is_it = [&](const KfdNode& node) { return node.partition == i; };
    const auto node = std::find_if(nodes_of_card.begin(), nodes_of_card.end(), is_it);
    if (node != nodes_of_card.end()) parts[i].node = *node;
    parts[i].partition = {modes.compute + ":" + std::to_string(i), facts_of(modes, parts[i].node)};
  }
  return parts;
}

}  // namespace gpumeter::amd
