#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/fleet/device_directory.hpp"
#include "daemon/setup.hpp"

namespace gpumeter {

/// A device as one look at the machine finds it, with the index that the daemon would give it.
struct SurveyedDevice {
  KnownDevice known;
  Collector* collector;
};

/// One look at the machine without threads, for commands that print and end. Blocks in drivers.
struct Survey {
  std::vector<std::unique_ptr<Collector>> collectors;
  std::vector<SurveyedDevice> devices;  ///< by index
  std::vector<std::string> notes;       ///< what cannot be read, why, and what would help
  std::map<std::string, bool> working;  ///< collectors that were asked, by name
};

Survey survey(const config::Config& config, const Clock& clock);

}  // namespace gpumeter
