#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exporter/history/columns.hpp"

namespace gpumeter {

inline constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

/// A workload on a GPU.
struct GpuHolder {
  std::string kind;
  std::string workload;
  double share = 0;       ///< of the GPU, 0 to 1
  std::string user = {};  ///< empty if unknown
};

/// A run on a GPU, as ml_run_gpu_info names it.
struct GpuRun {
  std::string run;
  std::string user;
  auto operator<=>(const GpuRun&) const = default;
};

/// A finding of the daemon about a GPU: one series of gpu_health_reason.
struct GpuReason {
  std::string reason;
  std::string severity;
  std::string action;
  bool operator==(const GpuReason&) const = default;
};

/// A GPU at one moment. A GPU that is not read has its labels and no values.
struct GpuPicture {
  unsigned index = 0;
  std::string gpu, uuid, vendor, model, name, pci_address;
  std::optional<bool> up = {};
  bool is_suspended = false;
  std::string state = {};  ///< of gpu_health; empty if the page has none
  std::vector<GpuReason> reasons = {};
  std::array<double, kGpuColumnCount> values = {};  ///< kAbsent: no value
  double memory_size_bytes = kAbsent;
  std::vector<std::string> throttled = {};  ///< causes that limit the clocks now
  std::vector<GpuHolder> holders = {};      ///< the largest share first
  std::vector<GpuRun> runs = {};
  /// Counters above 0 whose rise is an event: "xid_79", "bus_lost".
  std::map<std::string, double> event_counts = {};
};

/// A run at one moment.
struct RunPicture {
  std::string run, user;
  std::vector<std::string> gpus = {};  ///< labels `gpu`
  std::string status = {};             ///< how it ended; empty while it runs
  double start_timestamp_seconds = kAbsent;
  double run_time_seconds = kAbsent;
  double last_update_timestamp_seconds = kAbsent;
  double step = kAbsent;
  double steps = kAbsent;  ///< sum of ml_steps_total
  double samples = kAbsent, tokens = kAbsent;
  std::map<std::string, double> loss = {};           ///< by split
  std::map<std::string, double> phase_seconds = {};  ///< by phase
  double steps_per_second = kAbsent;                 ///< over the last 30 s; set by the history
};

/// What the page shows of the machine, from one walk over the store.
struct Picture {
  std::vector<GpuPicture> gpus = {};  ///< by index
  std::vector<RunPicture> runs = {};  ///< by run and user
  bool is_simulated = false;
};

}  // namespace gpumeter
