#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.hpp"
#include "programs/top/model/document.hpp"

namespace gpumeter::top {

/// The worst first. `down` is a GPU with gpu_up 0 and without a judgement.
enum class State : std::uint8_t { failed, down, degraded, unknown, up, ok };
inline constexpr EnumNames<State, 6> kStateNames = {{{State::failed, "failed"},
                                                     {State::down, "down"},
                                                     {State::degraded, "degraded"},
                                                     {State::unknown, "unknown"},
                                                     {State::up, "up"},
                                                     {State::ok, "ok"}}};

using Number = std::optional<double>;  ///< nullopt: the daemon does not have the value

/// A value of one of several alike, such as a temperature of one sensor.
struct Reading {
  std::string name;
  Number value;
  Number of;  ///< a second value to which the first one is compared
};
using Readings = std::vector<Reading>;

/// A workload on a GPU.
struct Share {
  std::string kind;
  std::string name;  ///< the pod's name, or the first 12 digits of a container's id, or the workload
  std::string user;  ///< empty if unknown
  double ratio = 0;
};

/// A GPU. Each Number has the unit of its family.
struct Gpu {
  std::string index;
  std::string uuid;
  std::string model;
  std::string pci_address;
  std::string driver_version;
  State state = State::unknown;
  bool is_suspended = false;
  Number state_seconds;  ///< since when the state holds
  std::vector<Finding> findings;
  Number utilization, utilization_max, power, power_limit, power_max, energy;
  Number memory_used, memory_size, temperature, margin;
  Number pcie_generation, pcie_generation_max, pcie_lanes, pcie_lanes_max, pcie_replays;
  Number row_remap_pending, row_remap_failed;
  Readings temperatures;      ///< by sensor, with the margin
  Readings clocks;            ///< by clock, with the highest
  Readings throttles;         ///< by cause: seconds since the daemon's start; `of` is 1 now
  Readings engines;           ///< utilisation by engine
  Readings fans;              ///< speed ratio by fan
  Readings links;             ///< by kind: links that are up, of all
  Readings link_errors;       ///< by kind
  Readings memory_errors;     ///< by severity
  Readings retired_pages;     ///< by cause
  Readings pcie_errors;       ///< by severity
  Readings xids;              ///< by code
  std::vector<Share> shares;  ///< the largest first, without the unattributed one
};

/// A job's run.
struct Run {
  std::string name;
  std::string user;
  std::string status;  ///< how it ended; empty while it runs
  Number step, steps, requests, loss, run_seconds, world_size, samples, tokens, energy;
  Readings phases;                ///< seconds by phase, summed over the run's processes
  std::vector<std::string> gpus;  ///< indexes
  double age_seconds = 0;         ///< of its values when the daemon answered

  // From several snapshots, see Progress.
  Number step_rate, request_rate;
  std::string phase;     ///< the one with the most time
  Number phase_seconds;  ///< of `phase` in a step
};

/// The machine at one moment, as the daemon answered.
struct Snapshot {
  std::string version;
  bool is_simulated = false;
  bool is_judged = false;  ///< the daemon reports health
  std::vector<Gpu> gpus;   ///< by index
  std::vector<Run> runs;   ///< those that run first, then by name
  std::vector<Finding> machine;
};

/// Names of all series of a Snapshot, for one request.
std::vector<std::string_view> snapshot_series();

/// Joins the series and the health of a daemon. Without health, the state comes from gpu_up. Pure.
Snapshot make_snapshot(const std::vector<Sample>& samples, const std::optional<Health>& health);

}  // namespace gpumeter::top
