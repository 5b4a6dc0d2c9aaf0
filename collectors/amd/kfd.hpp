#pragma once

#include <dirent.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectors/api/process_list.hpp"
#include "collectors/api/series.hpp"
#include "collectors/sources/pci.hpp"

/// The compute driver in sysfs, class/kfd/kfd: its GPUs (topology, kernel 6.12, kfd_topology.c), the
/// processes that compute on them (proc, kfd_process.c), and the parts of a divided card. The files are
/// readable by every user and, if not said otherwise, come from the driver's memory, so reading them does not
/// wake a card. /dev/kfd is never opened. The compute driver's queues bypass the DRM scheduler, so
/// /proc/<pid>/fdinfo does not show their work.
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

/// One process's use of one GPU node. `gpu` is the driver's number of the node: its `gpu_id` file.
struct KfdUse {
  std::uint32_t gpu = 0;
  std::optional<std::uint64_t> vram_bytes;
  /// Compute units with waves of the process at this moment. RDNA chips do not report it. The driver reads it
  /// from the hardware, which wakes a sleeping card.
  std::optional<int> compute_units;

  bool operator==(const KfdUse&) const = default;
};

/// The values to read.
enum class KfdDetail : std::uint8_t {
  memory,      ///< from the driver's memory: does not wake the card
  occupation,  ///< compute_units in addition
};

/// Returns the present use of each process, by its pid on the host. The uses are ordered by GPU number. Only
/// the GPUs in `gpus` are read, or all if it is empty. A process that ends during the read is omitted or
/// partial. sdma_* is never read: each read of it waits for work on the process's own queues. May block in
/// the driver.
std::map<int, std::vector<KfdUse>> kfd_processes(const std::string& sysfs_root, KfdDetail detail,
                                                 std::span<const std::uint32_t> gpus = {});

/// The processes that compute on a card, from the compute driver; processes that only draw are not included.
/// Shared by the device, which reads it, and its context, which decides whether the card may be read. Lane
/// thread.
class CardProcesses {
 public:
  /// `nodes`: the card's nodes; those of a divided card are combined.
  void open(std::string sysfs_root, const std::vector<KfdNode>& nodes);
  void close() noexcept { gpu_ids_.clear(); }

  /// Whether values that power the card up may be read; set by SleepPolicy at the start of each pass.
  void allow_hardware(bool allowed) noexcept { may_ask_hardware_ = allowed; }

  /// Same contract as ListsProcesses::processes(). Busy is the share of the card that a process occupies at
  /// this moment, applied to the time since the previous pass. It is exact for a steady job, and a sample
  /// every few seconds for an intermittent one. Only gfx9 chips (Vega to MI350) report it.
  ReadStatus read(const Pass& pass, std::vector<DeviceProcess>& out) noexcept;

 private:
  ReadStatus list(const Pass& pass, std::vector<DeviceProcess>& out) const;
  DeviceProcess describe(int pid, const std::vector<KfdUse>& uses, Nanoseconds elapsed) const;

  std::string sysfs_root_;
  std::vector<std::uint32_t> gpu_ids_;
  int compute_units_ = 0;
  bool may_ask_hardware_ = false;
};

/// The processes that keep a card awake because they hold its memory through the compute driver, which holds
/// a reference for each card in use (kernel 6.12, kfd_process.c, kfd_bind_process_to_device). Reading the
/// files does not wake the card. Allocates only when it is made. Lane thread.
class ComputeUsers {
 public:
  ComputeUsers() = default;
  /// `gpu_ids`: the card's numbers in the compute driver.
  ComputeUsers(const std::string& sysfs_root, std::vector<std::uint32_t> gpu_ids);

  bool any() const noexcept;

 private:
  struct CloseFolder {
    void operator()(DIR* folder) const noexcept { ::closedir(folder); }
  };
  bool holds_memory(const char* pid) const noexcept;

  std::unique_ptr<DIR, CloseFolder> processes_;
  std::vector<std::uint32_t> gpu_ids_;
};

// Partitions of Instincts from MI300 on. SPX is the whole card; DPX, TPX and QPX are two, three and four
// parts; CPX is one part for each compute die. NPS1 to NPS8 give the number of parts into which the memory is
// interleaved (kernel 6.12, amdgpu_gfx.c and amdgpu_gmc.c).

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
