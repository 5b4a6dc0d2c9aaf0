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
#include "collectors/attribution/workload_id.hpp"

namespace gpumeter::workloads {

/// What the meters of all devices share: which workloads there are, how many there may be, what they are,
/// and who used each device last. Any thread; no call here waits for anything but its mutex.
class WorkloadBook {
 public:
  /// Over all devices, beside `unattributed` and `_other`: one series of gpu_workload_info each.
  static constexpr std::size_t kMostWorkloads = 1024;

  explicit WorkloadBook(std::size_t most_workloads = kMostWorkloads) : most_workloads_(most_workloads) {}

  /// One more device has this workload. False: there are as many as there may be.
  bool open(const WorkloadId& id) GPUMETER_EXCLUDES(mutex_);

  /// One device fewer; the last one takes it away with all that is known of it.
  void close(const WorkloadId& id) GPUMETER_EXCLUDES(mutex_);

  /// A process of an open workload, by its group and its real user.
  void note(const WorkloadId& id, const cgroup::Attribution& process, std::optional<std::uint32_t> real_uid)
      GPUMETER_EXCLUDES(mutex_);

  /// A driver told of busy time or memory of an open workload.
  void note_measured(const WorkloadId& id) GPUMETER_EXCLUDES(mutex_);

  struct Workload {
    WorkloadId id;
    WorkloadFacts facts;
  };
  /// None while no device is read.
  std::vector<Workload> workloads() const GPUMETER_EXCLUDES(mutex_);
  /// Grows with every change of what workloads() gives.
  std::uint64_t generation() const GPUMETER_EXCLUDES(mutex_);

  /// The last word on a device, in place of the one before.
  void publish(std::shared_ptr<const DeviceUse> use) GPUMETER_EXCLUDES(mutex_);
  /// The device is not read any more: takes `last` away, unless somebody else has published since.
  void withdraw(const std::shared_ptr<const DeviceUse>& last) GPUMETER_EXCLUDES(mutex_);
  /// The device's driver hangs: takes away whatever was published, until there is more.
  void hide(const std::string& uuid) GPUMETER_EXCLUDES(mutex_);
  /// Of every device that is read and tells its users, by uuid.
  std::vector<std::shared_ptr<const DeviceUse>> uses() const GPUMETER_EXCLUDES(mutex_);

 private:
  struct Entry {
    std::size_t devices = 0;
    WorkloadFacts facts;
  };

  const std::size_t most_workloads_;
  mutable Mutex mutex_;
  std::map<WorkloadId, Entry> entries_ GPUMETER_GUARDED_BY(mutex_);
  std::size_t counted_ GPUMETER_GUARDED_BY(mutex_) = 0;  // of entries_, those that the bound is for
  std::uint64_t generation_ GPUMETER_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<const DeviceUse>> uses_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter::workloads
