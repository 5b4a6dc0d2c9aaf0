#pragma once

#include <map>
#include <string>
#include <vector>

#include "collectors/api/clock.hpp"
#include "collectors/api/device.hpp"
#include "collectors/api/result.hpp"

namespace gpumeter {

/// A device that was seen once, in this process or before.
struct KnownDevice {
  unsigned index = 0;  ///< label `gpu`; given to no other device while this one is known
  std::string collector;
  DeviceInfo info;
  Nanoseconds last_seen{};  ///< CLOCK_REALTIME
};

/// uuid -> index, kept in `<state>/devices.json`, so that a dead GPU does not shift the others after a
/// restart. One thread at a time.
class DeviceDirectory {
 public:
  /// `folder` is paths.state. A missing file is an empty directory.
  explicit DeviceDirectory(std::string folder) : folder_(std::move(folder)) {}

  /// An Error names the file and what is wrong with it; the file is then set aside as devices.json.bad,
  /// and the directory starts empty.
  Result<Done> load();

  /// Replaces the file in one step: it is the old one or the new one, also after a crash.
  Result<Done> save() const;

  /// The entry of a device that was seen `now`: its old index, or `preferred` where that is free, else the
  /// next above all.
  KnownDevice& admit(const std::string& collector, const DeviceInfo& info, unsigned preferred,
                     Nanoseconds now);

  /// Drops devices not seen since `before`. Returns their uuids.
  std::vector<std::string> forget(Nanoseconds before);

  const std::map<std::string, KnownDevice>& devices() const noexcept { return devices_; }
  KnownDevice* find(const std::string& uuid);

 private:
  unsigned free_index(const std::string& uuid, unsigned preferred) const;
  std::string path() const { return folder_ + "/devices.json"; }

  std::string folder_;
  std::map<std::string, KnownDevice> devices_;
};

}  // namespace gpumeter
