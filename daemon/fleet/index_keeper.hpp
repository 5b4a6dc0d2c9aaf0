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

/// Decides which device has which index: the place in PCI order over all vendors, kept over restarts, until a
/// device was missing for so long that its index is free again. One thread at a time.
class IndexKeeper {
 public:
  /// A device as a collector's discovery reported it.
  struct Find {
    std::string collector;
    DeviceInfo info;
    unsigned preferred = 0;  ///< the index it gets if that is free
  };
  struct Admission {
    const KnownDevice& device;
    bool is_changed;  ///< new, or no longer as it was
  };

  /// `keeper` saves the directory; null: it is not saved. `clock` outlives this object.
  IndexKeeper(DeviceDirectory directory, std::shared_ptr<StateKeeper> keeper, const Clock& clock)
      : clock_(clock),
        keeper_(std::move(keeper)),
        directory_(std::move(directory)),
        saved_at_(clock.monotonic()) {}

  /// The machine's display adapters in PCI order. Only the first call counts.
  void order_by(const std::vector<std::string>& bus);
  bool is_ordered() const noexcept { return is_ordered_; }

  void add(Find find) { found_.push_back(std::move(find)); }
  /// What was added since the last call, in the order in which indexes are given: PCI order, then devices on
  /// no bus as they came. Each prefers its place on the bus, or one after all of these: a card whose driver
  /// is loaded later finds its number free.
  std::vector<Find> take_found();
  Admission admit(const Find& find);
  void seen(const std::string& uuid);

  /// Counts the time since the last call for devices that are missing. Returns the uuids of those that it
  /// forgot because they were missing for `at_most`. Wall clocks jump, and nobody looks for a device while
  /// the daemon does not run, so only time in which discovery looked for it in vain counts.
  std::vector<std::string> forget(const DeviceDirectory::PresenceOf& presence, Nanoseconds at_most);
  /// The time until the next forget() does not count.
  void pause_forgetting() noexcept { looked_at_.reset(); }

  /// The directory must be saved at the next save_if_due().
  void changed() noexcept { is_changed_ = true; }
  /// Hands the directory to the keeper if it changed, and once a minute if `is_settled`.
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
  Nanoseconds saved_at_;  // CLOCK_MONOTONIC, as the next
  std::optional<Nanoseconds> looked_at_;
};

}  // namespace gpumeter
