#pragma once

#include <memory>
#include <vector>

#include "base/device_labels.hpp"
#include "base/topic.hpp"
#include "collectors/api/device_identity.hpp"

namespace gpumeter {

namespace health {
struct Report;
}
class DrmUsers;
class History;
class LiveAnswers;
struct WorkloadSettings;

/// What parts know of each other: snapshots that one publishes and others read. No part calls another. Any
/// thread.
struct Machine {
  Topic<std::vector<DeviceIdentity>>
      known_devices;  ///< by index; empty until the first pass over the devices has ended
  Topic<std::vector<DeviceIdentity>> read_devices;  ///< those that are read now, by index
  Topic<health::Report> health;                     ///< the last judgement

  // Constant after the start.
  History* history = nullptr;           ///< the last hours in memory
  std::shared_ptr<DrmUsers> drm_users;  ///< the scanner of clients of DRM devices; may be null
  LiveAnswers* live = nullptr;          ///< what browsers poll
  DeviceLabels device_labels;           ///< of every device series
  std::shared_ptr<const WorkloadSettings>
      workloads;  ///< who uses the devices; null: `workloads.enabled` is false
};

}  // namespace gpumeter
