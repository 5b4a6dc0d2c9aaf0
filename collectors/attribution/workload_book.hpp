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

/// The state shared by the meters of all devices: the workloads, their facts and limit, and the last use of
/// each device. Any thread; calls wait only for the mutex.
class WorkloadBook {
 public:
  /// Limit over all devices, in addition to `unattributed` and `_other`. Each workload has one series of
  /// gpu_workload_info.
  static constexpr std::size_t kMostWorkloads = 1024;

  explicit WorkloadBook(std::size_t most_workloads = kMostWorkloads) : most_workloads_(most_workloads) {}

  /// One more device has this workload. False: the limit is reached.
  bool open(const WorkloadId& id) GPUMETER_EXCLUDES(mutex_);

  /// One device fewer has this workload. The last call removes the workload and its facts.
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
  /// Returns an empty list while no device is read.
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
  std::size_t counted_ GPUMETER_GUARDED_BY(mutex_) = 0;  // number of entries_ that count towards the limit
  std::uint64_t generation_ GPUMETER_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<const DeviceUse>> uses_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter::workloads
