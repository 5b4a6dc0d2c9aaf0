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
#include "daemon/fleet/device_directory.hpp"
#include "daemon/fleet/device_order.hpp"
#include "daemon/fleet/left_behind.hpp"
#include "daemon/fleet/settings.hpp"
#include "daemon/fleet/state_keeper.hpp"
#include "daemon/lane/lane.hpp"
#include "daemon/log/log.hpp"
#include "daemon/self/metrics.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// All devices of the machine and the lanes that read them: who gets which index, who is up, who is lost
/// and comes back. Reports come from discovery threads, ticks from the watchdog's; no call here waits for
/// a driver. Threads that the kernel refuses (pids.max) are asked for again.
class Fleet : public std::enable_shared_from_this<Fleet> {
 public:
  /// `bus`: see order_by(); nullopt: order_by() sets it later. `keeper` saves the directory; null: it is not
  /// saved.
  Fleet(std::shared_ptr<Store> store, const Clock& clock, Log& log, DeviceDirectory directory,
        std::optional<std::vector<std::string>> bus, FleetSettings settings, WorkloadSettings workloads = {},
        std::shared_ptr<StateKeeper> keeper = nullptr);

  struct Addition {
    const CollectorEntry* entry;  ///< static storage
    CollectorContext context;
  };
  /// Starts the discovery of these collectors. Those of the start come in one call: the first devices wait
  /// for all collectors that are there.
  void add(std::vector<Addition> additions) GPUMETER_EXCLUDES(mutex_);

  /// The machine's display adapters in PCI order: the place there is a new device's index. The first devices
  /// wait for it, but not for long. Only the first call counts.
  void order_by(std::vector<std::string> bus) GPUMETER_EXCLUDES(mutex_);

  /// Ends a collector and its lanes; waits until `deadline` (monotonic) for those that hang.
  void remove(const std::string& collector, Nanoseconds deadline) GPUMETER_EXCLUDES(mutex_);

  /// Looks for devices now (hot plug, a driver loaded anew).
  void rediscover() GPUMETER_EXCLUDES(mutex_);

  /// New settings (reload): lanes follow at their next turn.
  void configure(const FleetSettings& settings) GPUMETER_EXCLUDES(mutex_);

  /// Closes every driver until restore(), or for `at_most`, so that it can be reloaded or reconfigured.
  /// Waits up to 2 s for calls under way; false: one did not end, and all goes on as before.
  bool release(Nanoseconds at_most) GPUMETER_EXCLUDES(mutex_);
  void restore() GPUMETER_EXCLUDES(mutex_);

  /// Looks after everybody: late lanes and discoveries, lost devices, threads to start again, gpu_up, what is
  /// to be saved. Every 100 ms or so, by one thread; blocks for nothing.
  void tick() GPUMETER_EXCLUDES(mutex_);

  /// True once every collector was asked and every device was read once, or is known not to answer.
  bool first_pass_over() const GPUMETER_EXCLUDES(mutex_);

  std::vector<DeviceStatus> devices() const GPUMETER_EXCLUDES(mutex_);
  void describe(SelfState& self) const GPUMETER_EXCLUDES(mutex_);

  /// Ends everything and hands the directory to its keeper. False: some thread hangs and was left behind.
  bool stop(Nanoseconds deadline) GPUMETER_EXCLUDES(mutex_);

 private:
  struct Member {
    std::string uuid;
    std::string collector;
    unsigned index = 0;
    std::shared_ptr<Lane> lane;
    Lane::Status status;
    bool up = false;
    bool overdue = false;  ///< its call hangs, or it waits for a driver that is full of calls that hang
    bool listed = true;    ///< by its collector's last discovery that succeeded
    bool is_started = false;
    Backoff thread{kLongestThreadWait};
  };

  CollectorHost host_of(Addition addition);
  void report(const std::string& collector, std::shared_ptr<Collector> opened, const Result<Discovery>& found)
      GPUMETER_EXCLUDES(mutex_);
  void take_report(CollectorHost& host, const Result<Discovery>& found) GPUMETER_REQUIRES(mutex_);
  void start_discovery(const std::string& collector, CollectorHost& host) GPUMETER_REQUIRES(mutex_);
  void start_threads() GPUMETER_REQUIRES(mutex_);
  void look_for_returned() GPUMETER_REQUIRES(mutex_);
  void watch_events(const std::string& collector, CollectorHost& host) GPUMETER_REQUIRES(mutex_);
  bool start_watcher(const std::string& collector, CollectorHost& host) GPUMETER_REQUIRES(mutex_);
  void tell(const DeviceEvent& event) GPUMETER_EXCLUDES(mutex_);
  void drop_missing(const CollectorHost& host, const Discovery& found) GPUMETER_REQUIRES(mutex_);
  void say_once(CollectorHost& host, const std::string& note) GPUMETER_REQUIRES(mutex_);
  void settle_if_ready() GPUMETER_REQUIRES(mutex_);
  void enroll_pending() GPUMETER_REQUIRES(mutex_);
  void enroll(const Find& find, unsigned preferred) GPUMETER_REQUIRES(mutex_);
  void make_lane(CollectorHost& host, const KnownDevice& device) GPUMETER_REQUIRES(mutex_);
  void start_lane(Member& member) GPUMETER_REQUIRES(mutex_);
  void look_at(Member& member) GPUMETER_REQUIRES(mutex_);
  void look_at(const std::string& collector, CollectorHost& host) GPUMETER_REQUIRES(mutex_);
  void log_change(const Member& member, bool was_up) GPUMETER_REQUIRES(mutex_);
  void retry_discovery() GPUMETER_REQUIRES(mutex_);
  void restore_if_overdue() GPUMETER_EXCLUDES(mutex_);
  bool all_released() GPUMETER_REQUIRES(mutex_);
  void forget_old() GPUMETER_REQUIRES(mutex_);
  Presence presence_of(const KnownDevice& device) const GPUMETER_REQUIRES(mutex_);
  void publish_up() GPUMETER_REQUIRES(mutex_);
  void save_if_due() GPUMETER_REQUIRES(mutex_);
  DeviceStatus status_of(const KnownDevice& known) const GPUMETER_REQUIRES(mutex_);
  void describe_passes(const Member& member, SelfState& self) const GPUMETER_REQUIRES(mutex_);
  static std::string state_text(const Member& member);
  Member* find(const std::string& uuid) GPUMETER_REQUIRES(mutex_);

  const std::shared_ptr<Store> store_;
  std::map<std::string, SeriesList> up_series_ GPUMETER_GUARDED_BY(mutex_);  // gpu_up, by collector
  const Clock& clock_;
  Log& log_;
  const Nanoseconds started_;
  const WorkloadSettings workloads_;
  const std::shared_ptr<StateKeeper> keeper_;
  const std::shared_ptr<HangingCalls> hanging_ =
      std::make_shared<HangingCalls>();  // of all collectors' discoveries

  mutable Mutex mutex_;
  FleetSettings settings_ GPUMETER_GUARDED_BY(mutex_);
  DeviceDirectory directory_ GPUMETER_GUARDED_BY(mutex_);
  std::map<std::string, CollectorHost> hosts_ GPUMETER_GUARDED_BY(mutex_);
  std::vector<Member> members_ GPUMETER_GUARDED_BY(mutex_);
  LeftBehind left_behind_ GPUMETER_GUARDED_BY(mutex_);
  std::vector<Find> pending_ GPUMETER_GUARDED_BY(mutex_);  // before the first round is settled
  std::optional<std::vector<std::string>> bus_ GPUMETER_GUARDED_BY(mutex_);
  std::optional<Nanoseconds> released_until_ GPUMETER_GUARDED_BY(mutex_);  // while drivers are closed
  bool has_collectors_ GPUMETER_GUARDED_BY(mutex_) = false;                // those of the start were added
  bool settled_ GPUMETER_GUARDED_BY(mutex_) = false;
  bool up_changed_ GPUMETER_GUARDED_BY(mutex_) = true;
  bool directory_changed_ GPUMETER_GUARDED_BY(mutex_) = false;
  std::optional<Nanoseconds> saved_at_ GPUMETER_GUARDED_BY(mutex_);   // monotonic, as the next
  std::optional<Nanoseconds> looked_at_ GPUMETER_GUARDED_BY(mutex_);  // for missing devices
};

}  // namespace gpumeter
