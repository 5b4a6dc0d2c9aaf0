#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectors/amd/kfd/topology.hpp"
#include "collectors/api/process_list.hpp"

/// Processes that compute on AMD cards, in class/kfd/kfd/proc of sysfs (kernel 6.12, kfd_process.c). The
/// compute driver's queues bypass the DRM scheduler, so /proc/<pid>/fdinfo does not show their work.
namespace gpumeter::amd {

/// What one process uses of one GPU node. `gpu` is the driver's number of the node: its `gpu_id` file.
struct KfdUse {
  std::uint32_t gpu = 0;
  std::optional<std::uint64_t> vram_bytes;
  /// Compute units with waves of the process at this moment. RDNA chips do not report it. The driver asks the
  /// hardware for it, which wakes a sleeping card.
  std::optional<int> compute_units;

  bool operator==(const KfdUse&) const = default;
};

/// How much to ask for.
enum class KfdDetail : std::uint8_t {
  memory,      ///< from the driver's books: wakes nothing
  occupation,  ///< compute_units too
};

/// What each process, by its pid on the host, uses now, by GPU in the order of their numbers; of `gpus`
/// alone, so that no other one is asked for anything, or of all where there are none. A process that ends
/// while it is read is left out, or in with what was read of it. sdma_* is never read: each read of it stops
/// for work on the process's own queues. May block in the driver.
std::map<int, std::vector<KfdUse>> kfd_processes(const std::string& sysfs_root, KfdDetail detail,
                                                 std::span<const std::uint32_t> gpus = {});

/// Who computes on a card, by the compute driver; who only draws is not there. Shared by the device, which is
/// asked for it, and its context, which decides whether the card may be read. Lane thread.
class CardProcesses {
 public:
  /// `nodes`: the card's; a divided one has several, which are taken together.
  void open(std::string sysfs_root, const std::vector<KfdNode>& nodes);
  void close() noexcept { gpu_ids_.clear(); }

  /// Whether the card may be asked for values that power it up, by SleepPolicy at the start of each pass.
  void allow_hardware(bool allowed) noexcept { may_ask_hardware_ = allowed; }

  /// As ListsProcesses::processes(). Busy is how much of the card a process occupies at this moment, as if it
  /// had done so since the pass before: of a steady job it is right, of one that comes and goes it is a
  /// sample every few seconds. Told by gfx9 chips (Vega to MI350) alone.
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
