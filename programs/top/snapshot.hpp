#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"
#include "programs/top/layout.hpp"

namespace gpumeter::top {

/// One series of /api/v1/series.
struct Sample {
  std::string name;
  std::map<std::string, std::string, std::less<>> labels;
  double value = 0;
  double age_seconds = 0;

  /// Returns an empty text if the series has no such label.
  std::string_view label(std::string_view key) const noexcept {
    const auto found = labels.find(key);
    return found == labels.end() ? std::string_view() : std::string_view(found->second);
  }
};

/// A reason of a state, from /api/v1/health.
struct Finding {
  std::string reason;
  std::string severity;
  std::string action;
  std::string text;
  std::string alert;
  Number since_seconds;
};

/// The worst first. `down` is a GPU with gpu_up 0 and without a judgement.
enum class State : std::uint8_t { failed, down, degraded, unknown, up, ok };
inline constexpr EnumNames<State, 6> kStateNames = {{{State::failed, "failed"},
                                                     {State::down, "down"},
                                                     {State::degraded, "degraded"},
                                                     {State::unknown, "unknown"},
                                                     {State::up, "up"},
                                                     {State::ok, "ok"}}};

/// A value of one of several alike, such as a temperature of one sensor.
struct Reading {
  std::string name;
  Number value;
  Number of;  ///< a second value to which the first one is compared
};
using Readings = std::vector<Reading>;

/// A workload on a GPU, or a process.
struct Share {
  std::string kind;  ///< of a process: "process 4711"
  std::string name;  ///< the pod's name, or the first 12 digits of a container's id, or the workload
  std::string user;  ///< empty if unknown
  Number ratio = {};
  Number memory = {};
};

/// The last minutes of a GPU, a value a second, the newest last.
struct Past {
  std::string uuid;  ///< empty: of none
  std::vector<Number> utilization, power, memory, temperature;
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
  Number utilization, power, power_limit, power_max, energy;
  Number memory_used, memory_size, temperature, margin;
  Number pcie_generation, pcie_generation_max, pcie_lanes, pcie_lanes_max, pcie_replays;
  Number row_remap_pending, row_remap_failed;
  Readings temperatures;          ///< by sensor, with the margin
  Readings clocks;                ///< by clock, with the highest
  Readings throttles;             ///< by cause: seconds since the daemon's start; `of` is 1 now
  Readings engines;               ///< utilisation by engine
  Readings fans;                  ///< speed ratio by fan
  Readings links;                 ///< by kind: links that are up, of all
  Readings link_errors;           ///< by kind
  Readings memory_errors;         ///< by severity
  Readings retired_pages;         ///< by cause
  Readings pcie_errors;           ///< by severity
  Readings xids;                  ///< by code
  std::vector<Share> shares;      ///< the largest first, without the unattributed one
  std::vector<Share> processes;   ///< if the daemon exports them (workloads.processes)
  std::vector<std::string> runs;  ///< runs that have not ended: "llama (alice)"
};

/// The daemon's judgement.
struct Health {
  std::vector<Gpu> gpus;  ///< with their identity, state and findings
  std::vector<Finding> machine;
};

/// Parse the daemon's answers. All texts of the result are printable(). Series whose value is not a finite
/// number are omitted. Fields that are missing or have another type are empty. The Error states what is
/// wrong with the document.
Result<std::vector<Sample>> parse_series(std::string_view json, Charset charset);
Result<Health> parse_health(std::string_view json, Charset charset);
Result<Past> parse_history(std::string_view json, Charset charset);

/// Returns the document of /api/v1/live as one line of ASCII.
Result<std::string> one_line(std::string_view json);
/// Returns such a line for a daemon that does not answer.
std::string error_line(const std::string& error);

/// A job's run.
struct Run {
  std::string name;
  std::string user;
  std::string status;  ///< how it ended; empty while it runs
  Number step, steps, requests, loss, run_seconds, energy;
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
  Past past;  ///< of the GPU whose plots are shown
};

/// Names of all series of a Snapshot, for one request.
std::vector<std::string_view> snapshot_series();

/// Joins the series and the health of a daemon. Without health, the state comes from gpu_up. Pure.
Snapshot make_snapshot(const std::vector<Sample>& samples, const std::optional<Health>& health);

/// Computes rates of runs from the snapshots of the last minute. Until there are snapshots of 10 s, the rates
/// are means over the run's time. One thread.
class Progress {
 public:
  /// Fills in the rates and phases of the runs. `now_seconds`: when the daemon answered, of a clock that
  /// never steps.
  void update(Snapshot& snapshot, double now_seconds);

 private:
  struct Point {
    double seconds;
    Number steps, requests;
    Readings phases;
  };
  using Window = std::deque<Point>;

  static void fill_in(Run& run, const Window& window);

  std::map<std::pair<std::string, std::string>, Window> windows_;  ///< by name and user
};

}  // namespace gpumeter::top
