#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "base/device_labels.hpp"
#include "base/mutex.hpp"
#include "collectors/api/device_identity.hpp"

namespace gpumeter {

namespace health {
struct Report;
}
namespace jobs {
struct RunList;
}
namespace workloads {
struct DeviceUse;
}
class DrmUsers;
class EventLedger;
class History;
class LiveAnswers;
struct WorkloadSettings;

/// The last snapshot of what one part publishes and others read: immutable, and replaced as a whole. Never
/// null: a topic without a publisher is empty. Any thread.
template <class T>
class Topic {
 public:
  std::shared_ptr<const T> get() const GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return now_;
  }
  void publish(T value) GPUMETER_EXCLUDES(mutex_) {
    auto next = std::make_shared<const T>(std::move(value));
    const MutexLock lock(mutex_);
    now_.swap(next);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const T> now_ GPUMETER_GUARDED_BY(mutex_) = std::make_shared<const T>();
};

/// What parts know of each other: snapshots that one publishes and others read. No part calls another. Any
/// thread. A service has `uses` and `runs`, which it asks the daemon for.
struct Machine {
  Topic<std::vector<DeviceIdentity>>
      known_devices;  ///< by index; empty until the first pass over the devices has ended
  Topic<std::vector<DeviceIdentity>> read_devices;  ///< those that are read now, by index
  Topic<health::Report> health;                     ///< the last judgement
  Topic<std::vector<std::shared_ptr<const workloads::DeviceUse>>> uses;  ///< the processes on each device
  Topic<jobs::RunList> runs;                                             ///< those that jobs report

  // Constant after the start.
  bool is_recorded = false;             ///< the store has the series of a recording (--replay)
  History* history = nullptr;           ///< the last hours in memory
  std::shared_ptr<EventLedger> events;  ///< of devices, from all sources; null: they are not collected
  std::shared_ptr<DrmUsers> drm_users;  ///< the scanner of clients of DRM devices; may be null
  LiveAnswers* live = nullptr;          ///< what browsers poll
  DeviceLabels device_labels;           ///< of every device series
  std::shared_ptr<const WorkloadSettings>
      workloads;  ///< who uses the devices; null: `workloads.enabled` is false
};

}  // namespace gpumeter
