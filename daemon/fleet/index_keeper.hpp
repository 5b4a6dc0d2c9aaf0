#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/fleet/device_directory.hpp"
#include "daemon/fleet/state_keeper.hpp"

namespace gpumeter {

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
