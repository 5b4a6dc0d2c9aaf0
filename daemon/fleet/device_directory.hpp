#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "collectors/api/device.hpp"

namespace gpumeter {

class StateKeeper;

/// Marks a state folder as in use, so that neither `gpumeter forget` nor a second daemon writes the folder of
/// a running daemon. The kernel removes the mark when the process ends, in whatever way.
class FolderLock {
 public:
  /// Takes the mark if no other process has it; does not wait for it. Returns an Error if the folder cannot
  /// be opened. Blocks for as long as the folder does.
  static Result<FolderLock> take(const std::string& folder);

  /// False if another process has the mark, or if the file system has no locks.
  bool is_ours() const noexcept { return holder_ == Holder::this_process; }
  /// True if another process has the mark.
  bool is_taken() const noexcept { return holder_ == Holder::other_process; }

 private:
  enum class Holder : std::uint8_t { this_process, other_process, unknown };

  FolderLock(Descriptor folder, Holder holder) noexcept : folder_(std::move(folder)), holder_(holder) {}

  Descriptor folder_;
  Holder holder_;
};

/// A device that was seen at least once, in this process or an earlier one.
struct KnownDevice {
  unsigned index = 0;  ///< label `gpu`; reserved while the device is known
  std::string collector;
  DeviceInfo info;
  Nanoseconds last_seen{};  ///< CLOCK_REALTIME; for information only
  Nanoseconds missing{};    ///< time of unsuccessful discovery since the device was last there, across
                            ///< restarts; counted only while `devices.forget` is set
};

/// The result for a known device of its collector's last discovery.
enum class Presence { there, unknown, missing };

/// Maps uuids to indexes in `<state>/devices.json`, so that a dead GPU does not shift the other indexes after
/// a restart, and keeps its `gpu_up 0`. The file belongs to one machine. One thread at a time.
class DeviceDirectory {
 public:
  /// Higher than the number of GPUs in any machine; a file with a higher index is damaged.
  static constexpr unsigned kHighestIndex = 4095;

  /// `folder` is paths.state. A missing file is an empty directory. `machine_id_file`: see machine-id(5).
  explicit DeviceDirectory(std::string folder, std::string machine_id_file = "/etc/machine-id")
      : folder_(std::move(folder)), machine_id_file_(std::move(machine_id_file)) {}

  /// Loads the file. Blocks for as long as the folder does. On failure, the Error names the file and the
  /// problem, and the directory starts empty. A file with wrong content is renamed to devices.json.bad. An
  /// unreadable file stays, and is_readable() is false. The file of another machine, such as that of a cloned
  /// disk, stays until the next save(), and is_foreign() is true. A machine without an id accepts every file.
  Result<Done> load();
  bool is_readable() const noexcept { return readable_; }
  bool is_foreign() const noexcept { return foreign_; }

  /// Replaces the file atomically and durably: after a crash it is the old one or the new one. The file gets
  /// the owner of the folder, so that the service can read what root wrote. Blocks for as long as the folder
  /// does.
  Result<Done> save() const;

  /// Returns the entry of a device that was seen `now`. A known device keeps its index. A new device gets
  /// `preferred` if that is free, otherwise the next above all. If that exceeds kHighestIndex, the device
  /// gets the lowest free index.
  KnownDevice& admit(const std::string& collector, const DeviceInfo& info, unsigned preferred,
                     Nanoseconds now);

  /// Adds `step` to the missing time of missing devices, and resets that of present devices. Returns the
  /// uuids of devices that have been missing for `at_most`.
  using PresenceOf = std::function<Presence(const KnownDevice&)>;
  std::vector<std::string> missing_for(const PresenceOf& presence, Nanoseconds step, Nanoseconds at_most);

  /// Drops the device and frees its index. Returns false if the device is not known.
  bool forget(const std::string& uuid);

  const std::map<std::string, KnownDevice>& devices() const noexcept { return devices_; }
  KnownDevice* find(const std::string& uuid);
  const KnownDevice* find(const std::string& uuid) const;

 private:
  unsigned free_index(unsigned preferred) const;
  std::string path() const { return folder_ + "/devices.json"; }

  std::string folder_;
  std::string machine_id_file_;
  std::string machine_id_;  // of this machine, or of the file if this machine has none
  std::map<std::string, KnownDevice> devices_;
  std::set<unsigned> taken_;  // the indexes of devices_
  bool readable_ = true;
  bool foreign_ = false;
};

/// Assigns the index of each device: its place in PCI order over all vendors. The index is kept across
/// restarts until the device is forgotten. One thread at a time.
class IndexKeeper {
 public:
  /// A device as reported by a collector's discovery.
  struct Find {
    std::string collector;
    DeviceInfo info;
    unsigned preferred = 0;  ///< the device's index if that is free
  };
  struct Admission {
    const KnownDevice& device;
    bool is_changed;  ///< the device is new or differs from its last discovery
  };

  /// `keeper` saves the directory; if it is null, the directory is not saved. `clock` must outlive this
  /// object.
  IndexKeeper(DeviceDirectory directory, std::shared_ptr<StateKeeper> keeper, const Clock& clock)
      : clock_(clock),
        keeper_(std::move(keeper)),
        directory_(std::move(directory)),
        saved_at_(clock.monotonic()) {}

  /// Sets the machine's display adapters in PCI order. Only the first call has an effect.
  void order_by(const std::vector<std::string>& bus);
  bool is_ordered() const noexcept { return is_ordered_; }

  void add(Find find) { found_.push_back(std::move(find)); }
  /// Returns the devices added since the last call in the order of their indexes: PCI order, then devices on
  /// no bus as they came. Each device prefers its place on the bus, or an index after all places. The number
  /// of a card whose driver is loaded later therefore stays free.
  std::vector<Find> take_found();
  Admission admit(const Find& find);
  void seen(const std::string& uuid);

  /// Counts the time since the last call for missing devices. Returns the uuids of the devices that were
  /// missing for `at_most`. Wall clocks jump, and no discovery runs while the daemon does not. Therefore only
  /// time in which discovery did not find the device counts.
  std::vector<std::string> missing_for(const DeviceDirectory::PresenceOf& presence, Nanoseconds at_most);
  /// Excludes the time until the next missing_for().
  void pause_counting() noexcept { looked_at_.reset(); }
  /// Drops the device and frees its index. Returns false if the device is not known.
  bool forget(const std::string& uuid);

  /// Marks the directory to be saved at the next save_if_due().
  void changed() noexcept { is_changed_ = true; }
  /// Passes the directory to the keeper if it changed, and once a minute if `is_settled`.
  void save_if_due(bool is_settled);

  const KnownDevice* find(const std::string& uuid) const { return directory_.find(uuid); }
  const std::map<std::string, KnownDevice>& devices() const noexcept { return directory_.devices(); }

 private:
  const Clock& clock_;
  const std::shared_ptr<StateKeeper> keeper_;
  DeviceDirectory directory_;
  std::map<std::string, unsigned> places_;  // on the bus, by PCI address
  bool is_ordered_ = false;
  std::vector<Find> found_;
  bool is_changed_ = false;
  Nanoseconds saved_at_;  // CLOCK_MONOTONIC, as is looked_at_
  std::optional<Nanoseconds> looked_at_;
};

}  // namespace gpumeter
