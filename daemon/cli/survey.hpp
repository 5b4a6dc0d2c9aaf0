#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "daemon/bus/bus.hpp"
#include "daemon/fleet/device_directory.hpp"
#include "daemon/setup.hpp"

namespace gpumeter {

/// A device of one survey, with the index that the daemon would assign.
struct SurveyedDevice {
  KnownDevice known;
  Collector* collector;
};

/// One discovery without threads, for commands that print and exit. Blocks in drivers.
struct Survey {
  std::vector<std::unique_ptr<Collector>> collectors;
  std::vector<SurveyedDevice> devices;  ///< by index
  std::vector<std::string> notes;       ///< sources that cannot be read, with reason and remedy
  std::map<std::string, bool> working;  ///< by name, for all enabled collectors: false if opening or
                                        ///< discovery failed
  std::map<std::string, CollectorTrouble> troubles;  ///< of every collector, by name
  std::vector<KnownDevice> missing;  ///< known devices of enabled collectors that were not found, by uuid
  Bus bus;
};

/// `drm_users`: for collectors; null: they know no clients.
Survey survey(const config::Config& config, const Clock& clock,
              const std::shared_ptr<DrmUsers>& drm_users = nullptr);

/// Returns the output of --list-devices: one line for each device and one for each of its sources, readable
/// or not. Below them, notes explain each failure.
std::string device_list(const config::Config& config);

}  // namespace gpumeter
