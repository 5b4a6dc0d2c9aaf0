#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/mutex.hpp"
#include "base/result.hpp"
#include "exporter/health/window.hpp"

namespace gpumeter::health {

/// Events of the devices that are still news, by uuid and by the series that counts them. For a gauge, such
/// as the number of links that are up, the count is the highest value so far.
using Events = std::map<std::string, std::map<std::string, OngoingEvent>>;

/// The events that only the daemon has counted, such as XIDs: they are news for as long after a restart of
/// the daemon as without it, until the machine boots, which resets the GPUs and may follow a change of their
/// bridges. Any thread.
class EventBook {
 public:
  void put(Events events) GPUMETER_EXCLUDES(mutex_);
  Events get() const GPUMETER_EXCLUDES(mutex_);

  /// Lines for load() (base/records.hpp).
  std::string save() const GPUMETER_EXCLUDES(mutex_);
  /// Replaces the contents by those that an earlier process of this boot saved; those of another boot are
  /// over. Returns an Error for other lines, and then changes nothing.
  Result<Done> load(std::string_view section, bool is_of_this_boot) GPUMETER_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  Events events_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter::health
