#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/api/device_status.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "daemon/fleet/collector_host.hpp"
#include "daemon/fleet/index_keeper.hpp"
#include "daemon/fleet/left_behind.hpp"
#include "daemon/fleet/member.hpp"
#include "daemon/fleet/settings.hpp"
#include "daemon/fleet/status_view.hpp"
#include "daemon/self/metrics.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// Supervises all collectors of the machine and the lanes that read their devices: starts and ends their
/// threads, notices those that hang, loses devices and opens them again. `IndexKeeper` decides which device
/// has which index, `StatusView` reports. Discovery threads report to the fleet, and the watchdog ticks it;
/// no call here waits for a driver. If the kernel refuses a thread (pids.max), the fleet requests it again.
class Fleet : public std::enable_shared_from_this<Fleet> {
 public:
  /// `bus`: see order_by(); nullopt: order_by() sets it later. `keeper` saves the directory; null: it is not
  /// saved.
  Fleet(std::shared_ptr<Store> store, const Clock& clock, Log& log, DeviceDirectory directory,
        const std::optional<std::vector<std::string>>& bus, FleetSettings settings,
        WorkloadSettings workloads = {}, std::shared_ptr<StateKeeper> keeper = nullptr);

  struct Addition {
    const CollectorEntry* entry;  ///< static storage
    CollectorContext context;
  };
  /// Starts the discovery of these collectors. At the start they come in one call: the first devices wait for
  /// all collectors of that call.
  void add(std::vector<Addition> additions) GPUMETER_EXCLUDES(mutex_);

  /// The machine's display adapters in PCI order: the place in it is a new device's index. The first devices
  /// wait for it for a short time. Only the first call counts.
  void order_by(const std::vector<std::string>& bus) GPUMETER_EXCLUDES(mutex_);

  /// Ends a collector and its lanes; waits until `deadline` (monotonic) for those that hang.
  void remove(const std::string& collector, Nanoseconds deadline) GPUMETER_EXCLUDES(mutex_);

  /// Looks for devices now (hot plug, a driver loaded again).
  void rediscover() GPUMETER_EXCLUDES(mutex_);

  /// New settings (reload): lanes follow at their next turn.
  void configure(const FleetSettings& settings) GPUMETER_EXCLUDES(mutex_);

  /// Closes every driver until restore(), or for `at_most`, so that it can be reloaded or reconfigured.
  /// Waits up to 2 s for calls under way. False: one did not end, and all goes on as before.
  bool release(Nanoseconds at_most) GPUMETER_EXCLUDES(mutex_);
  void restore() GPUMETER_EXCLUDES(mutex_);

  /// Looks at every lane and discovery, starts threads that are missing, publishes gpu_up, hands changes to
  /// the keeper. Every 100 ms or so, by one thread; does not block.
  void tick() GPUMETER_EXCLUDES(mutex_);

  /// True once every collector has reported and every device was read once, or does not answer.
  bool first_pass_over() const GPUMETER_EXCLUDES(mutex_);

  std::vector<DeviceStatus> devices() const GPUMETER_EXCLUDES(mutex_);
  void describe(SelfState& self) const GPUMETER_EXCLUDES(mutex_);

  /// Ends everything and hands the directory to its keeper. False: some thread hangs and was left behind.
  bool stop(Nanoseconds deadline) GPUMETER_EXCLUDES(mutex_);

 private:
  using Hosts = std::map<std::string, CollectorHost>;
  using Members = std::map<std::string, Member>;

  void add(Addition addition) GPUMETER_REQUIRES(mutex_);
  void report(const std::string& collector, std::shared_ptr<Collector> opened, const Result<Discovery>& found)
      GPUMETER_EXCLUDES(mutex_);
  void take_found(const CollectorHost& host, const Discovery& found) GPUMETER_REQUIRES(mutex_);
  void tell(const DeviceEvent& event) GPUMETER_EXCLUDES(mutex_);
  void settle_if_ready() GPUMETER_REQUIRES(mutex_);
  void enroll(const IndexKeeper::Find& find) GPUMETER_REQUIRES(mutex_);
  void make_lane(CollectorHost& host, const KnownDevice& device) GPUMETER_REQUIRES(mutex_);
  void look_at_members() GPUMETER_REQUIRES(mutex_);
  void look_for_returned() GPUMETER_REQUIRES(mutex_);
  void forget_old() GPUMETER_REQUIRES(mutex_);
  void drop(Members::iterator member) GPUMETER_REQUIRES(mutex_);
  Presence presence_of(const KnownDevice& device) const GPUMETER_REQUIRES(mutex_);
  void publish_up() GPUMETER_REQUIRES(mutex_);
  void restore_if_overdue() GPUMETER_EXCLUDES(mutex_);
  bool all_released() const GPUMETER_REQUIRES(mutex_);
  void end(Hosts& hosts, Members& members, Nanoseconds deadline) GPUMETER_EXCLUDES(mutex_);
  StatusView view() const GPUMETER_REQUIRES(mutex_) { return {indexes_, hosts_, members_, left_behind_}; }

  const std::shared_ptr<Store> store_;
  const Clock& clock_;
  Log& log_;
  const Nanoseconds started_;
  const WorkloadSettings workloads_;
  const std::shared_ptr<HangingCalls> hanging_ = std::make_shared<HangingCalls>();  // of all discoveries

  mutable Mutex mutex_;
  FleetSettings settings_ GPUMETER_GUARDED_BY(mutex_);
  IndexKeeper indexes_ GPUMETER_GUARDED_BY(mutex_);
  Hosts hosts_ GPUMETER_GUARDED_BY(mutex_);      // by the collector's name
  Members members_ GPUMETER_GUARDED_BY(mutex_);  // by uuid
  LeftBehind left_behind_ GPUMETER_GUARDED_BY(mutex_);
  std::map<std::string, SeriesList> up_series_ GPUMETER_GUARDED_BY(mutex_);  // gpu_up, by collector
  std::optional<Nanoseconds> released_until_ GPUMETER_GUARDED_BY(mutex_);    // while drivers are closed
  bool has_collectors_ GPUMETER_GUARDED_BY(mutex_) = false;                  // those of the start were added
  bool is_settled_ GPUMETER_GUARDED_BY(mutex_) = false;  // the first devices have their indexes
  bool up_changed_ GPUMETER_GUARDED_BY(mutex_) = true;
};

}  // namespace gpumeter
