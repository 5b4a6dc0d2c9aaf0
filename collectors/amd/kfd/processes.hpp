#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectors/amd/kfd/topology.hpp"
#include "collectors/api/process_list.hpp"

/// Processes that compute on AMD cards, from class/kfd/kfd/proc of sysfs (kernel 6.12, kfd_process.c). The
/// compute driver's queues bypass the DRM scheduler, so /proc/<pid>/fdinfo does not show their work.
namespace gpumeter::amd {

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

}  // namespace gpumeter::amd
