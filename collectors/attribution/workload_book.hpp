#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "collectors/api/series.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"
#include "collectors/attribution/device_use.hpp"

namespace gpumeter::workloads {

/// The labels `kind` and `workload`, which identify a workload on the machine.
struct WorkloadId {
  cgroup::Kind kind = cgroup::Kind::unattributed;
  std::string name;

  auto operator<=>(const WorkloadId&) const = default;
};

template <class Fields>
void fields(Fields& f, WorkloadId& id) {
  f.named(id.kind, cgroup::kKindNames)(id.name).check(!id.name.empty());
}

/// Processes without a group, and the use of a device while it has no process.
inline WorkloadId unattributed() { return {cgroup::Kind::unattributed, "unattributed"}; }

/// The workloads beyond the limit. A group's name is a path, a slice or a monitor's, never this.
inline WorkloadId all_others() { return {cgroup::Kind::other, "_other"}; }

/// A fact shared by all processes of a workload. Once two processes differ it stays empty, so that a label
/// does not come and go with the processes.
template <class T>
class Common {
 public:
  /// Returns true if the fact changed. A process without the fact does not contradict the others.
  bool merge(const std::optional<T>& value) {
    if (!value || differ_ || value_ == value) return false;
    differ_ = value_.has_value();
    value_ = differ_ ? std::nullopt : value;
    return true;
  }
  const std::optional<T>& value() const noexcept { return value_; }

 private:
  std::optional<T> value_;
  bool differ_ = false;
};

/// The labels of gpu_workload_info, in addition to the workload's name.
struct WorkloadFacts {
  Common<std::string> unit;          ///< empty for units with a new name at each start
  Common<std::string> container_id;  ///< set if the workload is one container
  Common<std::string> container_runtime;
  Common<std::string> pod_uid;
  Common<std::string> slurm_job;
  Common<std::string> slurm_sluid;
  Common<std::uint32_t> uid;
  Common<std::string> group;  ///< path of its control group; no label
  /// Labels of the variables of its first process; nullopt: not read.
  std::optional<std::vector<Label>> environment;
  /// True if a driver reports busy time or memory of its processes; otherwise its shares are equal parts.
  bool is_measured = false;

  /// Adds one more process, whose real user is `real_uid`. Returns true if a fact changed.
  bool merge(const cgroup::Attribution& process, std::optional<std::uint32_t> real_uid);
};

/// A text of the facts: its label of gpu_workload_info, and where a process of the workload has it.
struct WorkloadFact {
  const char* label;  ///< null: none
  Common<std::string> WorkloadFacts::*common;
  std::string cgroup::Attribution::*of_process;
};
inline constexpr WorkloadFact kWorkloadFacts[] = {
    {"unit", &WorkloadFacts::unit, &cgroup::Attribution::unit},
    {"container_id", &WorkloadFacts::container_id, &cgroup::Attribution::container_id},
    {"container_runtime", &WorkloadFacts::container_runtime, &cgroup::Attribution::container_runtime},
    {"pod_uid", &WorkloadFacts::pod_uid, &cgroup::Attribution::pod_uid},
    {"slurm_job", &WorkloadFacts::slurm_job, &cgroup::Attribution::slurm_job},
    {"slurm_sluid", &WorkloadFacts::slurm_sluid, &cgroup::Attribution::slurm_sluid},
    {nullptr, &WorkloadFacts::group, &cgroup::Attribution::group}};

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

  /// True for an open workload until the first note_environment().
  bool lacks_environment(const WorkloadId& id) const GPUMETER_EXCLUDES(mutex_);
  /// Only the first call for a workload counts, until it is closed: a job cannot change its labels.
  void note_environment(const WorkloadId& id, std::vector<Label> labels) GPUMETER_EXCLUDES(mutex_);

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
