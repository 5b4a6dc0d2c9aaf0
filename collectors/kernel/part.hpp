#pragma once

#include <string>

#include "base/options.hpp"
#include "collectors/api/part.hpp"

namespace gpumeter {
struct EventRecord;
}

namespace gpumeter::kernel {

/// `kernel` in the configuration.
struct Settings {
  std::string log = "auto";  ///< "auto": /dev/kmsg, if it may be read; "off"; or a path
  bool operator==(const Settings&) const = default;
};
extern const options::Section kSection;

/// The verdict of the catalogue on an event that a driver's library reports (EventLedger::Describe).
void describe(EventRecord& event);

/// Reads the kernel's log once a second and notes its lines about GPUs, and about the bridges and network
/// adapters near them, in Machine::events. Counts those that no collector counts (gpu_events_total). Keeps
/// the place in the log, so that no line counts twice in one boot.
extern const PartEntry kPart;

}  // namespace gpumeter::kernel
