#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace gpumeter::amd {

/// The compute driver's source of events. Event thread.
class SmiDevice {
 public:
  virtual ~SmiDevice() = default;

  /// Opens the event stream of a GPU node by its gpu_id: a descriptor that poll() can wait for, which reports
  /// the events of `mask`. May block in the driver.
  virtual Result<Descriptor> open_stream(std::uint32_t gpu_id, std::uint64_t mask) = 0;
};

/// /dev/kfd and its ioctl AMDKFD_IOC_SMI_EVENTS (linux/kfd_ioctl.h). The first stream opens the node.
///
/// An open node holds no card awake: only a process that binds a card's memory does (kernel 6.12,
/// kfd_process.c, kfd_bind_process_to_device). But the driver keeps the process registered until the process
/// ends, and refuses to change partitions meanwhile (kfd_device.c, kgd2kfd_check_and_lock_kfd).
class KfdDevice final : public SmiDevice {
 public:
  explicit KfdDevice(std::string path = "/dev/kfd") : path_(std::move(path)) {}
  Result<Descriptor> open_stream(std::uint32_t gpu_id, std::uint64_t mask) override;

 private:
  const std::string path_;
  Descriptor node_;
};

}  // namespace gpumeter::amd
