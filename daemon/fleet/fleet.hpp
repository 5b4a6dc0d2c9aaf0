#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/api/device.hpp"
#include "collectors/api/device_identity.hpp"
#include "collectors/api/device_status.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "daemon/fleet/collector_host.hpp"
#include "daemon/fleet/device_directory.hpp"
#include "daemon/fleet/settings.hpp"
#include "daemon/lane/lane.hpp"
#include "daemon/state/device_totals.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

struct SelfState;

/// The state of a device whose call hangs, in the list of devices.
inline constexpr const char* kHangs = "does not answer";

/// One enrolled device: its lane and the result of the last look(). Guarded by the fleet that owns it.
class Member {
 public:
  /// `host` and `clock` must outlive this object.
  Member(const KnownDevice& device, CollectorHost& host, std::shared_ptr<Lane> lane, const Clock& clock)
      : index_(device.index), uuid_(device.info.uuid), host_(host), lane_(std::move(lane)), clock_(clock) {}

  unsigned index() const noexcept { return index_; }
  const std::string& uuid() const noexcept { return uuid_; }
  CollectorHost& host() const noexcept { return host_; }
  Lane& lane() const noexcept { return *lane_; }
  const std::shared_ptr<Lane>& shared_lane() const noexcept { return lane_; }

  /// Starts the lane's thread if it does not run and its next attempt is due. A device without a thread has
  /// gpu_up 0. The log and the list of devices give the reason.
  void start_if_due();

  /// Reads the lane's status. Returns true if is_up() or is_known() changed.
  bool look();
  void log_change(const KnownDevice& device, Log& log) const;

  const Lane::Status& status() const noexcept { return status_; }
  /// True if the page has the device's values.
  bool is_up() const noexcept { return is_up_; }
  /// True if the device's call hangs, or if it waits for a driver that is full of hanging calls.
  bool is_overdue() const noexcept { return is_overdue_; }
  /// True if the device was read once or does not answer.
  bool is_known() const noexcept { return status_.first_pass_over || is_overdue_; }
  /// Returns the state for the list of devices: "ok", "starting", or the reason why the device is not read.
  std::string state_text() const;
  /// True if the lane is released. A lane without a thread holds nothing open.
  bool is_released() const;

  bool is_listed = true;  ///< in its collector's last successful discovery

 private:
  const unsigned index_;
  const std::string uuid_;
  CollectorHost& host_;
  const std::shared_ptr<Lane> lane_;
  const Clock& clock_;
  Lane::Status status_;
  bool is_started_ = false;
  bool is_up_ = false;
  bool was_up_ = false;  ///< before the last change
  bool is_overdue_ = false;
  Backoff thread_{kLongestThreadWait};
};

/// Supervises all collectors of the machine and the lanes that read their devices. The fleet starts and ends
/// their threads, detects hanging threads, and closes and reopens devices. `IndexKeeper` assigns the indexes.
/// Discovery threads report to the fleet, and the watchdog calls tick(); no call here
/// waits for a driver. If the kernel refuses a thread (pids.max), the fleet requests it again.
class Fleet : public std::enable_shared_from_this<Fleet> {
 public:
  /// Publishes `machine`'s devices; it must outlive the fleet, as `clock` and `log` must.
  Fleet(std::shared_ptr<Store> store, Machine& machine, const Clock& clock, Log& log, IndexKeeper indexes,
        FleetSettings settings, WorkloadSettings workloads = {},
        std::shared_ptr<TotalsBook> totals = std::make_shared<TotalsBook>());

  struct Addition {
    const CollectorEntry* entry;  ///< static storage
    CollectorContext context;
  };
  /// Starts the discovery of these collectors. At the start, pass all collectors in one call: the first
  /// devices wait for all of them.
  void add(std::vector<Addition> additions) GPUMETER_EXCLUDES(mutex_);

  /// Sets the machine's display adapters in PCI order; a new device's index is its place in this order. The
  /// first devices wait a short time for this call. Only the first call has an effect.
  void order_by(const std::vector<std::string>& bus) GPUMETER_EXCLUDES(mutex_);

  /// Ends a collector and its lanes; waits until `deadline` (monotonic) for threads that hang.
  void remove(const std::string& collector, Nanoseconds deadline) GPUMETER_EXCLUDES(mutex_);

  /// Starts a discovery now (hot plug, a driver loaded again).
  void rediscover() GPUMETER_EXCLUDES(mutex_);

  /// Applies new settings (reload): lanes follow at their next turn.
  void configure(const FleetSettings& settings) GPUMETER_EXCLUDES(mutex_);

  /// Forgets a missing device: its gpu_up ends and its index becomes free. Returns an Error if the device is
  /// not known, and if discovery finds it, because the next discovery would add it again. Any thread.
  Result<Done> forget(const std::string& uuid) GPUMETER_EXCLUDES(mutex_);

  /// Closes every driver until restore(), or for `at_most`, so that an operator can reload or reconfigure it.
  /// Waits up to 2 s for calls under way. Returns false if a call did not end; the drivers are then opened
  /// again.
  bool release(Nanoseconds at_most) GPUMETER_EXCLUDES(mutex_);
  void restore() GPUMETER_EXCLUDES(mutex_);

  /// Checks every lane and discovery, starts missing threads, publishes gpu_up and passes changes to the
  /// keeper. Called about every 200 ms by one thread; does not block.
  void tick() GPUMETER_EXCLUDES(mutex_);

  /// True when every collector has reported and every device was read once or does not answer.
  bool first_pass_over() const GPUMETER_EXCLUDES(mutex_);

  /// Returns all known devices of running collectors, by index.
  std::vector<DeviceStatus> devices() const GPUMETER_EXCLUDES(mutex_);
  /// Adds the health of the collectors.
  void describe(SelfState& self) const GPUMETER_EXCLUDES(mutex_);
  /// Returns the error of each running collector's discovery, by the collector's name; empty if it works.
  std::map<std::string, std::string> collector_errors() const GPUMETER_EXCLUDES(mutex_);

  /// Ends everything and passes the directory to its keeper. Returns false if a thread hangs and was left
  /// behind.
  bool stop(Nanoseconds deadline) GPUMETER_EXCLUDES(mutex_);

 private:
  using Hosts = std::map<std::string, CollectorHost>;
  using Members = std::map<std::string, Member>;

  void add(Addition addition) GPUMETER_REQUIRES(mutex_);
  void report(const std::string& collector, std::shared_ptr<Collector> opened, const Result<Discovery>& found)
      GPUMETER_EXCLUDES(mutex_);
  void take_found(const CollectorHost& host, const Discovery& found) GPUMETER_REQUIRES(mutex_);
  void log_event(const DeviceEvent& event) GPUMETER_EXCLUDES(mutex_);
  void settle_if_ready() GPUMETER_REQUIRES(mutex_);
  void enroll(const IndexKeeper::Find& find) GPUMETER_REQUIRES(mutex_);
  void make_lane(CollectorHost& host, const KnownDevice& device) GPUMETER_REQUIRES(mutex_);
  void look_at_members() GPUMETER_REQUIRES(mutex_);
  void look_for_returned() GPUMETER_REQUIRES(mutex_);
  void forget_long_missing() GPUMETER_REQUIRES(mutex_);
  std::string missing_devices() const GPUMETER_REQUIRES(mutex_);
  void drop(const std::string& uuid) GPUMETER_REQUIRES(mutex_);
  void end_lane(Members::iterator member) GPUMETER_REQUIRES(mutex_);
  Presence presence_of(const KnownDevice& device) const GPUMETER_REQUIRES(mutex_);
  bool is_first_pass_over() const GPUMETER_REQUIRES(mutex_);
  void publish_up() GPUMETER_REQUIRES(mutex_);
  void restore_if_overdue() GPUMETER_EXCLUDES(mutex_);
  bool all_released() const GPUMETER_REQUIRES(mutex_);
  void end(Hosts& hosts, Members& members, Nanoseconds deadline) GPUMETER_EXCLUDES(mutex_);
  /// Returns nullptr for a device without a lane.
  const Member* member_of(const std::string& uuid) const GPUMETER_REQUIRES(mutex_);
  DeviceStatus status_of(const KnownDevice& known) const GPUMETER_REQUIRES(mutex_);
  /// The known devices of running collectors, also missing ones, or those that are read; by index.
  enum class Which : bool { known, read };
  std::vector<DeviceIdentity> identities(Which which) const GPUMETER_REQUIRES(mutex_);

  const std::shared_ptr<Store> store_;
  Machine& machine_;
  const Clock& clock_;
  Log& log_;
  const Nanoseconds started_;
  const WorkloadSettings workloads_;
  const std::shared_ptr<TotalsBook> totals_;
  const std::shared_ptr<HangingCalls> hanging_ = std::make_shared<HangingCalls>();  // of all discoveries

  mutable Mutex mutex_;
  FleetSettings settings_ GPUMETER_GUARDED_BY(mutex_);
  IndexKeeper indexes_ GPUMETER_GUARDED_BY(mutex_);
  Hosts hosts_ GPUMETER_GUARDED_BY(mutex_);      // by the collector's name
  Members members_ GPUMETER_GUARDED_BY(mutex_);  // by uuid
  LeftBehind left_behind_ GPUMETER_GUARDED_BY(mutex_);
  std::map<std::string, SeriesList> up_series_ GPUMETER_GUARDED_BY(mutex_);  // gpu_up, by collector
  std::optional<Nanoseconds> released_until_ GPUMETER_GUARDED_BY(mutex_);    // while drivers are closed
  bool has_collectors_ GPUMETER_GUARDED_BY(mutex_) = false;  // the start's collectors were added
  bool is_settled_ GPUMETER_GUARDED_BY(mutex_) = false;      // the first devices have their indexes
  bool was_over_ GPUMETER_GUARDED_BY(mutex_) = false;        // the first pass, at the last tick
  bool up_changed_ GPUMETER_GUARDED_BY(mutex_) = true;
};

}  // namespace gpumeter
