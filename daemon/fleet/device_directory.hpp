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

/// A device that was seen once, in this process or before.
struct KnownDevice {
  unsigned index = 0;  ///< label `gpu`; given to no other device while this one is known
  std::string collector;
  DeviceInfo info;
  Nanoseconds last_seen{};  ///< CLOCK_REALTIME; only for people
  Nanoseconds
      missing{};  ///< time in which discovery looked for it in vain since it was there last, over restarts
};

/// Whether the last discovery of its collector found a known device.
enum class Presence { there, unknown, missing };

/// uuid -> index, kept in `<state>/devices.json`, so that a dead GPU does not shift the others after a
/// restart. One thread at a time.
class DeviceDirectory {
 public:
  /// Above any number of GPUs in a machine; a file with more is damaged.
  static constexpr unsigned kHighestIndex = 4095;

  /// `folder` is paths.state. A missing file is an empty directory.
  explicit DeviceDirectory(std::string folder) : folder_(std::move(folder)) {}

  /// Blocks for as long as the folder does. An Error names the file and what is wrong with it, and the
  /// directory starts empty. A file with wrong content is set aside as devices.json.bad; one that cannot be
  /// read stays, and is_readable() is false.
  Result<Done> load();
  bool is_readable() const noexcept { return readable_; }

  /// Replaces the file in one step: it is the old one or the new one, also after a crash. Blocks for as long
  /// as the folder does.
  Result<Done> save() const;

  /// The entry of a device that was seen `now`: its old index, or `preferred` where that is free, else the
  /// next above all, or the lowest free one where that is above kHighestIndex.
  KnownDevice& admit(const std::string& collector, const DeviceInfo& info, unsigned preferred,
                     Nanoseconds now);

  /// Adds `step` to the missing time of devices that are missing, and ends that of those that are there.
  /// Drops devices that are missing and were so for `at_most`. Returns their uuids.
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
