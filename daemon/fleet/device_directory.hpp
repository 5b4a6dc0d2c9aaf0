#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "collectors/api/device.hpp"

namespace gpumeter {

/// A device that was seen at least once, in this process or an earlier one.
struct KnownDevice {
  unsigned index = 0;  ///< label `gpu`; reserved while the device is known
  std::string collector;
  DeviceInfo info;
  Nanoseconds last_seen{};  ///< CLOCK_REALTIME; for information only
  Nanoseconds missing{};  ///< time of unsuccessful discovery since the device was last there, across restarts
};

/// The result for a known device of its collector's last discovery.
enum class Presence { there, unknown, missing };

/// Maps uuids to indexes in `<state>/devices.json`, so that a dead GPU does not shift the other indexes after
/// a restart. One thread at a time.
class DeviceDirectory {
 public:
  /// Higher than the number of GPUs in any machine; a file with a higher index is damaged.
  static constexpr unsigned kHighestIndex = 4095;

  /// `folder` is paths.state. A missing file is an empty directory.
  explicit DeviceDirectory(std::string folder) : folder_(std::move(folder)) {}

  /// Loads the file. Blocks for as long as the folder does. On failure, the Error names the file and the
  /// problem, and the directory starts empty. A file with wrong content is renamed to devices.json.bad. An
  /// unreadable file stays, and is_readable() is false.
  Result<Done> load();
  bool is_readable() const noexcept { return readable_; }

  /// Replaces the file atomically: after a crash it is the old one or the new one. Blocks for as long as the
  /// folder does.
  Result<Done> save() const;

  /// Returns the entry of a device that was seen `now`. A known device keeps its index. A new device gets
  /// `preferred` if that is free, otherwise the next above all. If that exceeds kHighestIndex, the device
  /// gets the lowest free index.
  KnownDevice& admit(const std::string& collector, const DeviceInfo& info, unsigned preferred,
                     Nanoseconds now);

  /// Adds `step` to the missing time of missing devices, and resets that of present devices. Drops devices
  /// that have been missing for `at_most` and returns their uuids.
  using PresenceOf = std::function<Presence(const KnownDevice&)>;
  std::vector<std::string> forget(const PresenceOf& presence, Nanoseconds step, Nanoseconds at_most);

  const std::map<std::string, KnownDevice>& devices() const noexcept { return devices_; }
  KnownDevice* find(const std::string& uuid);
  const KnownDevice* find(const std::string& uuid) const;

 private:
  unsigned free_index(unsigned preferred) const;
  std::string path() const { return folder_ + "/devices.json"; }

  std::string folder_;
  std::map<std::string, KnownDevice> devices_;
  std::set<unsigned> taken_;  // the indexes of devices_
  bool readable_ = true;
};

}  // namespace gpumeter
