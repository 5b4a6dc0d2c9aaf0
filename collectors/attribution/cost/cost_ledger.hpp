#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "base/result.hpp"
#include "collectors/api/workload_cost.hpp"
#include "collectors/attribution/workload_book.hpp"

namespace gpumeter::workloads {

/// One workload in the account of a device. Times: CLOCK_MONOTONIC.
struct AccountEntry {
  WorkloadId id;
  DeviceCost cost;
  double energy_joules = 0;            ///< its counter, also if the device has no energy counter at present
  double idle_joules = 0;              ///< the part of it without activity
  std::optional<double> busy_counter;  ///< its counter of busy time, as the driver reports it
  double part = 0;                     ///< of the device's future energy
  bool is_present = false;             ///< it has a process on the device
  Nanoseconds begun{};                 ///< first seen on the device
  Nanoseconds seen{};                  ///< last seen on the device
};

/// All workloads of one device at one moment, `unattributed` included: what a restarted daemon needs to
/// continue their counters. Immutable once created: any thread.
struct DeviceAccount {
  std::string uuid;
  unsigned index = 0;
  std::optional<double> energy_total;  ///< the device's counter at that moment
  std::vector<AccountEntry> entries;
};

/// What every workload of the machine costs, and what those cost that ended within a day. Lanes publish the
/// accounts of their devices; views read them. It also holds what a restarted daemon continues. Any thread;
/// calls wait only for the mutex.
class CostLedger {
 public:
  /// An ended workload is kept for this long, and this many of them: the oldest leave first.
  static constexpr Nanoseconds kEndedStays = std::chrono::hours(24);
  static constexpr std::size_t kMostEnded = 4096;
  /// After this time without a process a workload counts as over: later processes of its name are another
  /// one. As DeviceMeter::kWorkloadStays.
  static constexpr Nanoseconds kStays = std::chrono::minutes(10);
  /// A workload on a device that has not been read for this long counts as ended.
  static constexpr Nanoseconds kSilent = std::chrono::minutes(2);
  /// The longest restart over which a device's energy counts for the workloads that held it before. Beyond it
  /// nobody knows who used the device, so the energy is unattributed.
  static constexpr Nanoseconds kLongestRestart = std::chrono::minutes(1);

  /// `clock` must outlive the ledger.
  explicit CostLedger(const Clock& clock) : clock_(clock) {}

  /// Replaces the account of a device.
  void publish(std::shared_ptr<const DeviceAccount> account) GPUMETER_EXCLUDES(mutex_);

  /// The labels of all workloads that exist now.
  using Names = std::vector<std::pair<WorkloadId, std::vector<Label>>>;
  void describe(Names&& names) GPUMETER_EXCLUDES(mutex_);

  /// The labels with which an earlier process saved a workload that goes on; none if there is none.
  std::vector<Label> earlier_labels(const WorkloadId& id) const GPUMETER_EXCLUDES(mutex_);

  /// Running workloads first, then the ended ones, the last one first. `unattributed` and `_other` are left
  /// out.
  std::vector<WorkloadCost> workloads() GPUMETER_EXCLUDES(mutex_);

  /// The account with which an earlier process ended, once. `counts_own_energy`: gpumeter counts the device's
  /// energy, so its counter continues over a boot of the machine. The account of another boot has only the
  /// energy of `unattributed`, and none if the hardware counts, because its counter started again.
  std::optional<DeviceAccount> take_earlier(const std::string& uuid, bool counts_own_energy)
      GPUMETER_EXCLUDES(mutex_);
  /// Adds the facts of such a workload, which is open, to the book.
  void note_earlier_facts(const WorkloadId& id, WorkloadBook& book) GPUMETER_EXCLUDES(mutex_);

  /// The section of the state file. `book`: the facts of the workloads.
  std::string save(const WorkloadBook& book) GPUMETER_EXCLUDES(mutex_);
  /// Takes the figures of an earlier process, saved at `saved_at` (CLOCK_REALTIME). Workloads of an earlier
  /// boot have ended.
  Result<Done> load(std::string_view section, Nanoseconds saved_at, bool is_of_this_boot)
      GPUMETER_EXCLUDES(mutex_);

 private:
  friend class LedgerReader;
  struct Part {  // of one device
    DeviceCost cost;
    bool is_present = false;
    Nanoseconds begun{};  // CLOCK_MONOTONIC
  };
  struct Open {
    Nanoseconds begun{}, seen{};        // CLOCK_REALTIME
    std::map<std::string, Part> parts;  // by uuid
    std::vector<Label> labels;
  };
  struct EarlierFacts {
    cgroup::Attribution attribution;
    bool is_measured = false;
  };
  struct Contents {
    std::map<WorkloadId, Open> open;
    std::deque<WorkloadCost> ended;                // in the order of their ends
    std::map<std::string, DeviceAccount> earlier;  // not taken yet, by uuid
    std::map<WorkloadId, EarlierFacts> facts;
  };

  void take(const AccountEntry& entry, const std::string& uuid) GPUMETER_REQUIRES(mutex_);
  void close(const WorkloadId& id, const Open& open) GPUMETER_REQUIRES(mutex_);
  void close_silent() GPUMETER_REQUIRES(mutex_);
  void drop_old() GPUMETER_REQUIRES(mutex_);
  WorkloadCost cost_of(const WorkloadId& id, const Open& open) const GPUMETER_REQUIRES(mutex_);
  Nanoseconds realtime_of(Nanoseconds monotonic) const {
    return clock_.realtime() - (clock_.monotonic() - monotonic);
  }

  const Clock& clock_;
  mutable Mutex mutex_;
  Contents contents_ GPUMETER_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<const DeviceAccount>> accounts_
      GPUMETER_GUARDED_BY(mutex_);  // by uuid
  std::map<WorkloadId, std::vector<Label>> names_ GPUMETER_GUARDED_BY(mutex_);
  bool is_of_this_boot_ GPUMETER_GUARDED_BY(mutex_) = false;  // of contents_.earlier
};

}  // namespace gpumeter::workloads
