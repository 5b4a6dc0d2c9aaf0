#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "daemon/fleet/backoff.hpp"
#include "daemon/fleet/discoverer.hpp"
#include "daemon/fleet/event_watcher.hpp"
#include "daemon/lane/driver_gate.hpp"

namespace gpumeter {

/// How long it takes at the most until a thread that the kernel refused is asked for again: a limit that is
/// lifted shows within 10 s.
inline constexpr Nanoseconds kLongestThreadWait = std::chrono::seconds(8);
inline constexpr Nanoseconds kLongestRediscovery = std::chrono::seconds(60);

/// One running collector: its discovery thread, the gate to its driver, and how it is doing. Guarded by
/// the fleet that owns it.
struct CollectorHost {
  const CollectorEntry* entry = nullptr;
  std::shared_ptr<DriverGate> gate;
  std::shared_ptr<Discoverer> discoverer;
  std::shared_ptr<EventWatcher> watcher;       ///< null if its driver reports no events
  std::shared_ptr<Collector> collector;        ///< of the last report; null while it cannot be opened
  bool reported = false;                       ///< its first discovery is over
  bool up = false;                             ///< its last discovery succeeded
  bool is_looking = false;                     ///< its discovery thread is started
  bool is_late = false;                        ///< its discovery hangs
  std::set<std::string> said;                  ///< notes and errors already in the log
  std::map<unsigned, ReadErrors> past_errors;  ///< of lanes that are gone, by the GPU's index
  unsigned lanes_started = 0;
  Backoff rediscovery{kLongestRediscovery};  ///< while a device is lost: soon at first, then rarely
  Backoff discovery_thread{kLongestThreadWait};
  Backoff event_thread{kLongestThreadWait};
};

/// Fraction of its interval by which the n-th lane of a driver is shifted: multiples of the golden ratio
/// spread evenly however many lanes there will be.
double stagger_of(unsigned lane) noexcept;

}  // namespace gpumeter
