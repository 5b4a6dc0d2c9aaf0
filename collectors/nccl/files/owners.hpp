#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/attribution/allocation/meter.hpp"
#include "collectors/attribution/device_use.hpp"
#include "collectors/nccl/run_labels.hpp"
#include "exporter/store/labels.hpp"

namespace gpumeter::nccl {

/// A GPU of this machine or a part of one, as in the labels.
struct GpuPlace {
  unsigned index = 0;
  std::string uuid;
  std::string partition;  ///< empty: the whole GPU

  /// gpu, uuid and, for a part, partition.
  Labels labels() const;
};

/// The users of the machine's GPUs at one moment, by which a file of a job is believed: the kernel knows the
/// file's owner and the processes on each GPU. A process counts until a minute after it left. One thread.
class Owners {
 public:
  struct Parts {
    std::vector<std::shared_ptr<const workloads::DeviceUse>> uses;
    std::vector<allocation::PartitionFacts> partitions;
    std::vector<std::string> allowed;  ///< names or uids in digits; empty: all users
    /// The run that a process works for, if one of the job's processes reports it.
    std::function<std::optional<RunLabels>(const workloads::ProcessUse&)> run_of;
    std::function<std::string(std::uint32_t uid)> user_name;
  };
  explicit Owners(Parts parts) : parts_(std::move(parts)) {}

  /// The GPU or MIG instance with this UUID as CUDA and HIP print it, without a prefix: 16 bytes in digits,
  /// of AMD cards the 16 letters of the card's own id (unverified on hardware).
  std::optional<GpuPlace> place_of(std::string_view uuid) const;

  /// The user, and the run of all the user's processes on the GPU `uuid`, or on all GPUs if it is empty. An
  /// empty run: the processes work for several. nullopt: the user has no process there, or is not allowed.
  std::optional<RunLabels> run_of(std::uint32_t uid, const std::string& uuid) const;

 private:
  const Parts parts_;
};

}  // namespace gpumeter::nccl
