// The same bytes in each file of the compute driver's topology and of its processes.
#include <string>
#include <vector>

#include "collectors/amd/kfd.hpp"
#include "tests/fuzz/folder.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter::amd {
namespace {

constexpr const char* kFiles[] = {"topology/nodes/0/properties",
                                  "topology/nodes/0/gpu_id",
                                  "topology/nodes/0/mem_banks/0/properties",
                                  "topology/nodes/0/io_links/0/properties",
                                  "proc/1/vram_7",
                                  "proc/1/stats_7/cu_occupancy",
                                  "proc/2/vram_x"};

void check_peaks(const KfdNode& card) {
  for (const Peak peak : {Peak::fp32, Peak::fp16, Peak::bf16, Peak::memory}) {
    const std::optional<double> rate = peak_of(card, peak);
    fuzz::expect(!rate || *rate >= 0);
  }
}

void check_nodes(const std::vector<KfdNode>& nodes) {
  fuzz::expect(nodes.size() <= 1);
  for (const KfdNode& node : nodes) {
    fuzz::expect(node.compute_units >= 0 && node.clock_megahertz >= 0 && node.memory_bits >= 0);
    fuzz::expect((node.target == 0) == architecture_name(node.target).empty());
    check_peaks(node);
    fuzz::expect(kfd_nodes_of(nodes, {node.address, node.device, node.render_minor}).size() == 1);
    fuzz::expect(kfd_whole(nodes).has_value());
  }
}

}  // namespace
}  // namespace gpumeter::amd

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  static const fuzz::Folder folder;
  for (const char* const name : amd::kFiles) {
    folder.write(std::string("class/kfd/kfd/") + name, fuzz::text_of(data, size));
  }
  const std::vector<amd::KfdNode> nodes = amd::kfd_nodes(folder.path());
  amd::check_nodes(nodes);
  fuzz::expect(amd::kfd_links(folder.path(), nodes).empty());  // no second card
  for (const auto& [pid, uses] : amd::kfd_processes(folder.path(), amd::KfdDetail::occupation)) {
    fuzz::expect(pid == 1 || pid == 2);
    for (const amd::KfdUse& use : uses) fuzz::expect(use.gpu == 7 && use.compute_units.value_or(0) >= 0);
  }
  return 0;
}
