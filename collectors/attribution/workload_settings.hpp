#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/options.hpp"
#include "collectors/api/part.hpp"
#include "collectors/attribution/cost/cost_ledger.hpp"
#include "collectors/attribution/names/name_book.hpp"
#include "collectors/attribution/workload_book.hpp"

namespace gpumeter::workloads {

/// Requests lists of processes before the next one is due, because a workload has just begun: a job of a few
/// seconds would otherwise be missed. Shared by the thread that notices workloads and the lanes. Any thread;
/// never waits.
class ListRequest {
 public:
  /// Times of the lists after the event. A program opens its GPU up to a few seconds after its start.
  static constexpr std::array<Nanoseconds, 3> kAfter = {std::chrono::seconds(0), std::chrono::seconds(1),
                                                        std::chrono::seconds(3)};

  /// A workload began. `at`: CLOCK_MONOTONIC.
  void note(Nanoseconds at) noexcept { at_ = at.count(); }

  /// True if one of the times lies between the last list and now.
  bool is_due(Nanoseconds now, Nanoseconds last_list) const noexcept {
    const Nanoseconds at(at_.load());
    return at != kNone && std::ranges::any_of(kAfter, [&](Nanoseconds after) {
             return last_list < at + after && at + after <= now;
           });
  }

 private:
  static constexpr Nanoseconds kNone{-1};
  std::atomic<std::int64_t> at_ = kNone.count();
};

/// Reads the environment of the first process of each workload on a GPU, once, for gpu_workload_info. A part
/// of its own, because a process can hold the kernel's lock of its memory, for which such a read waits.
extern const PartEntry kEnvironment;

/// Keeps gpu_workload_info in the store: one series for each workload that uses a device or was given one.
/// Names that the kubelet, Slurm or an administrator gave stay as last seen: Slurm's leave with the epilog,
/// the workload's series minutes later.
extern const PartEntry kInfo;

}  // namespace gpumeter::workloads

namespace gpumeter {

/// Returns a user's name for a label, or the uid in digits. Any thread.
using UserName = std::function<std::string(std::uint32_t uid)>;

/// Attribution of devices to their users, for drivers that report it: `workloads` in the configuration.
struct WorkloadOptions {
  bool enabled = true;
  bool processes = false;                     ///< also export series for each process
  std::vector<std::string> environment = {};  ///< names of variables whose values become labels
  bool operator==(const WorkloadOptions&) const = default;
};
extern const options::Section kWorkloadSection;

/// What attribution shares, the same for all devices and fixed while the daemon runs.
struct WorkloadSettings {
  std::shared_ptr<workloads::WorkloadBook> book;  ///< null: config `workloads.enabled` is false
  std::shared_ptr<workloads::CostLedger> costs;   ///< null only in tests: costs are not kept
  std::shared_ptr<workloads::NameBook> names;     ///< null: no source of names
  std::shared_ptr<workloads::ListRequest> lists;  ///< null: processes are listed at their interval only
  const Clock* clock = nullptr;                   ///< null: the counters of workloads have no start time
  std::string procfs = "/proc";
  Nanoseconds lists_every = std::chrono::seconds(10);  ///< the interval of the lists of processes
  bool processes = false;                              ///< each process has its own series
  std::vector<std::string> environment;                ///< as WorkloadOptions::environment
  UserName user_name = [](std::uint32_t uid) { return std::to_string(uid); };
};

}  // namespace gpumeter
