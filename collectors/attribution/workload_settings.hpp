#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/options.hpp"
#include "collectors/attribution/cost/cost_ledger.hpp"
#include "collectors/attribution/list_request.hpp"
#include "collectors/attribution/names/name_book.hpp"
#include "collectors/attribution/workload_book.hpp"

namespace gpumeter {

/// Returns a user's name for a label, or the uid in digits. Any thread.
using UserName = std::function<std::string(std::uint32_t uid)>;

/// Attribution of devices to their users, for drivers that report it: `workloads` in the configuration.
struct WorkloadOptions {
  bool enabled = true;
  bool processes = false;  ///< also export series for each process
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
  UserName user_name = [](std::uint32_t uid) { return std::to_string(uid); };
};

}  // namespace gpumeter
