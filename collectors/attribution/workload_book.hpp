#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "collectors/attribution/device_use.hpp"
#include "collectors/attribution/workload_facts.hpp"

namespace gpumeter::workloads {

/// The state that the meters of all devices share: the workloads, their facts and bound, and the last use of
/// each device. Any thread; calls wait for the mutex only.
class WorkloadBook {
 public:
  /// Over all devices, besides `unattributed` and `_other`: each has one series of gpu_workload_info.
  static constexpr std::size_t kMostWorkloads = 1024;

  explicit WorkloadBook(std::size_t most_workloads = kMostWorkloads) : most_workloads_(most_workloads) {}

  /// One more device has this workload. False: the bound is reached.
  bool open(const WorkloadId& id) GPUMETER_EXCLUDES(mutex_);

  /// One device fewer has it. The last one removes the workload and its facts.
  void close(const WorkloadId& id) GPUMETER_EXCLUDES(mutex_);

  /// Adds the facts of a process of an open workload.
  void note(const WorkloadId& id, const cgroup::Attribution& process, std::optional<std::uint32_t> real_uid)
      GPUMETER_EXCLUDES(mutex_);

  /// A driver reported busy time or memory of an open workload.
  void note_measured(const WorkloadId& id) GPUMETER_EXCLUDES(mutex_);

  struct Workload {
    WorkloadId id;
    WorkloadFacts facts;
  };
  /// None while no device is read.
  std::vector<Workload> workloads() const GPUMETER_EXCLUDES(mutex_);
  /// Grows with every change of workloads().
  std::uint64_t generation() const GPUMETER_EXCLUDES(mutex_);

  /// Replaces the device's last use.
  void publish(std::shared_ptr<const DeviceUse> use) GPUMETER_EXCLUDES(mutex_);
  /// The device is no longer read: removes `last`, unless a later use was published.
  void withdraw(const std::shared_ptr<const DeviceUse>& last) GPUMETER_EXCLUDES(mutex_);
  /// The device's driver hangs: removes the published use until the next one.
  void hide(const std::string& uuid) GPUMETER_EXCLUDES(mutex_);
  /// The last use of every device that is read and whose driver lists processes, by uuid.
  std::vector<std::shared_ptr<const DeviceUse>> uses() const GPUMETER_EXCLUDES(mutex_);

 private:
  struct Entry {
    std::size_t devices = 0;
    WorkloadFacts facts;
  };

  const std::size_t most_workloads_;
  mutable Mutex mutex_;
  std::map<WorkloadId, Entry> entries_ GPUMETER_GUARDED_BY(mutex_);
  std::size_t counted_ GPUMETER_GUARDED_BY(mutex_) = 0;  // of entries_, those under the bound
  std::uint64_t generation_ GPUMETER_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<const DeviceUse>> uses_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter::workloads
