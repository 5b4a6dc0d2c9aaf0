#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Processes that compute on AMD cards, in class/kfd/kfd/proc of sysfs (kernel 6.12, kfd_process.c). The
/// compute driver's queues bypass the DRM scheduler, so /proc/<pid>/fdinfo does not show their work.
namespace gpumeter::amd {

/// What one process uses of one GPU node. `gpu` is the driver's number of the node: its `gpu_id` file.
struct KfdUse {
  std::uint32_t gpu = 0;
  std::optional<std::uint64_t> vram_bytes;
  /// Compute units with waves of the process at this moment. Not told by RDNA chips. The driver asks the
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

}  // namespace gpumeter::amd
