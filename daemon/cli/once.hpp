#pragma once

#include <functional>
#include <string>

#include "config/config.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// Returns the output of --list-devices: one line for each device and one for each of its sources, readable
/// or not. Below them, notes explain each failure.
std::string device_list(const config::Config& config);

/// Returns the output of --once: all tiers of every device read `passes` times, 1 s apart, as one page of
/// text 0.0.4. Uses no threads; if a driver hangs, the command hangs.
std::string page_once(const config::Config& config, int passes);

/// Reads all devices as above and passes the store to `use`, while it has all series. Missing devices of an
/// earlier run have gpu_up 0. Prints the reasons why others cannot be read on stderr.
void sample_once(const config::Config& config, int passes, const std::function<void(const Store&)>& use);

}  // namespace gpumeter
