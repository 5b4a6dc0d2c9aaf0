#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "daemon/discoverer.hpp"
#include "daemon/driver_gate.hpp"
#include "daemon/event_watcher.hpp"

namespace gpumeter {

/// One running collector: its discovery thread, the gate to its driver, and how it is doing. Guarded by
/// the fleet that owns it.
struct CollectorHost {
  const CollectorEntry* entry = nullptr;
  std::shared_ptr<DriverGate> gate;
  std::shared_ptr<Discoverer> discoverer;
  std::shared_ptr<EventWatcher> watcher;  ///< null where its driver tells of nothing
  std::shared_ptr<Collector> collector;   ///< of the last report; null while it cannot be opened
  bool reported = false;                  ///< its first discovery is over
  bool up = false;
  std::set<std::string> said;                  ///< notes and errors already in the log
  std::map<unsigned, ReadErrors> past_errors;  ///< of lanes that are gone, by the GPU's index
  unsigned lanes_started = 0;
  // Rediscovery while a device is lost: soon at first, then rarely.
  Nanoseconds retry_at{};
  Nanoseconds retry_after{};
};

/// Fraction of its interval by which the n-th lane of a driver is shifted: multiples of the golden ratio
/// spread evenly however many lanes there will be.
double stagger_of(unsigned lane) noexcept;

}  // namespace gpumeter
