#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/simulated/event.hpp"
#include "collectors/simulated/model.hpp"
#include "collectors/simulated/process_option.hpp"

namespace gpumeter::simulated {

/// A fleet's worth: enough to see how Prometheus and the dashboards take it.
inline constexpr unsigned kMostDevices = 1024;

/// The keys of `collectors.simulated`. Their defaults are those of Settings below.
inline constexpr CollectorOption kOptions[] = {
    {"devices", CollectorOption::Kind::integer, "2", "Number of simulated GPUs, 1 to 1024."},
    {"seed", CollectorOption::Kind::integer, "1",
     "Seed of the uuids and phases. The same seed gives the same machine."},
    {"period", CollectorOption::Kind::duration, "7s300ms",
     "Length of the load cycle. Each device is busy once in a period."},
    {"duty", CollectorOption::Kind::number, "0.37", "Busy share of the period, 0 to 1."},
    {"idle_power", CollectorOption::Kind::number, "90", "Power while idle, in watts."},
    {"busy_power", CollectorOption::Kind::number, "420", "Power while busy, in watts; at least idle_power."},
    {"events", CollectorOption::Kind::list, "",
     "Simulated failures: \"hang|lose|overheat|throttle DEVICE after TIME [for TIME]\"."},
    {"processes", CollectorOption::Kind::list, "",
     "Real processes shown on the devices: \"GPU=WHO[,busy=RATIO][,memory=BYTES]\". GPU may be *. WHO is a "
     "pid "
     "or a file with one pid per line."},
};

/// The keys as values.
struct Settings {
  int devices = 2;
  std::uint64_t seed = 1;
  Workload workload;
  std::vector<Event> events;
  std::vector<ProcessOption> processes;
};

/// The first key that is wrong, and what would be right.
std::variant<Settings, OptionProblem> read_settings(
    const std::map<std::string, std::vector<std::string>>& options);

/// The same with the problem as an Error, which names the key.
Result<Settings> parse_settings(const std::map<std::string, std::vector<std::string>>& options);

}  // namespace gpumeter::simulated
