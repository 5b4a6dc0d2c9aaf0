#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gpumeter::nccl {

/// A dump of one rank by PyTorch's flight recorder.
struct FlightDump {
  /// How far the rank is in one process group: sequence numbers of collective operations from 1 on. nullopt:
  /// none yet, or not recorded (`started` needs TORCH_NCCL_ENABLE_TIMING).
  struct Group {
    std::string name;         ///< the same on all ranks: "0"
    std::string description;  ///< "default_pg", "mesh_dp"; empty: none
    std::optional<std::int64_t> enqueued, started, completed;

    bool operator==(const Group&) const = default;
  };
  std::vector<Group> groups;
};

/// Groups of one rank; those that the rank created first.
inline constexpr std::size_t kMostGroups = 16;
/// Entries that are searched for the groups' names. PyTorch's documentation sets 2,000.
inline constexpr std::size_t kMostEntries = 1U << 16U;

/// Reads a dump in one of its two forms: a pickle (version 2.3 and later, of PyTorch 2.4), or JSON. The
/// numbers of the groups differ between ranks, so that a group without an entry, which has its name, is
/// omitted. torch/csrc/distributed/c10d/FlightRecorder.hpp.
Result<FlightDump> parse_flight_dump(std::string_view bytes);

}  // namespace gpumeter::nccl
