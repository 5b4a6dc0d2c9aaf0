#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/worker.hpp"
#include "daemon/lane/device_session.hpp"

namespace gpumeter {

/// Limits the number of lanes inside one driver. If calls past their deadlines hold all places, the library
/// counts as stuck: no other lane enters, and no new call is made. Any thread.
class DriverGate {
 public:
  /// `max_parallel` 0: no limit. `clock` must outlive the gate.
  DriverGate(int max_parallel, const Clock& clock)
      : clock_(clock), places_(static_cast<std::size_t>(max_parallel)) {}

  /// A place inside the driver, for one call. The gate must outlive the place.
  class Place {
   public:
    ~Place() { gate_.leave(deadline_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    /// Returns the time after which the call is late (CLOCK_MONOTONIC).
    Nanoseconds deadline() const noexcept { return deadline_; }

   private:
    friend DriverGate;
    Place(DriverGate& gate, Nanoseconds deadline) noexcept : gate_(gate), deadline_(deadline) {}
    DriverGate& gate_;
    const Nanoseconds deadline_;
  };

  /// Waits for a place. The deadline is `allowed` after the moment of entry: the wait does not count. Returns
  /// null if close() came first.
  std::unique_ptr<Place> enter(Nanoseconds allowed) GPUMETER_EXCLUDES(mutex_);

  /// True while calls past their deadlines hold all places.
  bool is_stuck() const GPUMETER_EXCLUDES(mutex_);

  /// Rejects all waiting and later callers: the collector stops.
  void close() GPUMETER_EXCLUDES(mutex_);

 private:
  void leave(Nanoseconds deadline) GPUMETER_EXCLUDES(mutex_);
  bool is_full() const GPUMETER_REQUIRES(mutex_) { return places_ > 0 && deadlines_.size() >= places_; }

  const Clock& clock_;
  const std::size_t places_;
  mutable Mutex mutex_;
  Condition changed_;
  std::multiset<Nanoseconds> deadlines_ GPUMETER_GUARDED_BY(mutex_);  // of the calls inside
  bool closed_ GPUMETER_GUARDED_BY(mutex_) = false;
};

/// One device's sampling thread. A driver call may hang in it for ever, so no thread waits for it without a
/// deadline. The thread and the fleet share the lane; a lane that does not stop in time is left behind.
/// Orders are queued; the thread executes them between two driver calls.
class Lane : public std::enable_shared_from_this<Lane> {
 public:
  enum class State : std::uint8_t {
    starting,
    reading,
    lost,
    released,
    silent,  ///< attached, but no read succeeds; retried with each pass
  };

  /// Can be read without waiting for the driver.
  struct Status {
    State state = State::starting;
    std::optional<Nanoseconds> overdue_at;  ///< deadline of the call under way (CLOCK_MONOTONIC)
    bool at_gate = false;                   ///< waiting for a place in the driver
    std::string trouble;                    ///< why the device is not read; empty if the device is read
    bool first_pass_over = false;
    std::array<double, 3> duration{};  ///< seconds of the last fast, normal and slow pass; 0: none yet
    Nanoseconds last_success{};        ///< CLOCK_REALTIME of the last pass with a good reading; 0: none yet
    ReadErrors errors{};
  };

  /// `stagger`: see TierSchedule.
  Lane(std::unique_ptr<DeviceSession> session, std::shared_ptr<DriverGate> gate, const Clock& clock,
       const SamplingIntervals& intervals, double stagger);

  /// Starts the thread. Call it once, and again only after an Error. Until then status() returns the Error as
  /// `trouble`.
  Result<Done> start() GPUMETER_EXCLUDES(mutex_);

  /// See Worker.
  void request_stop() { worker_.request_stop(); }
  bool join(Nanoseconds deadline) { return worker_.join(deadline); }

  /// Opens the device in its current form. Called when discovery found the device again or found it changed.
  void revive(const DeviceInfo& info);

  /// Closes the device until revive(), because discovery no longer finds it. Does nothing if the device is
  /// closed already.
  void lose(std::string why);

  /// Closes the device until revive().
  void release();

  /// Sets intervals, name and labels.
  void configure(const SamplingIntervals& intervals, const std::string& name, const DeviceLabels& labels);

  Status status() const GPUMETER_EXCLUDES(mutex_);

  /// Removes the device's series from the page until its next commit, because its call is late. Any thread.
  void hide() { session_->hide(); }

 private:
  struct Open {
    DeviceInfo info;
  };
  struct Close {
    State state;  ///< lost or released
    std::string why;
  };
  struct Configure {
    SamplingIntervals intervals;
    std::string name;
    DeviceLabels labels;
  };
  using Order = std::variant<Open, Close, Configure>;
  class FastFirst;

  template <class IsObsolete>
  void post(Order order, IsObsolete is_obsolete);
  Nanoseconds turn() noexcept;
  void work();
  void obey(const Open& order) { attach(order.info); }
  void obey(const Close& order);
  void obey(const Configure& order);
  void attach(const DeviceInfo& info);
  void first_passes();
  void take_turn(Tier tier);
  void follow_session();
  bool has_more() GPUMETER_EXCLUDES(mutex_);
  void rebind();
  PassOutcome run_pass(Tier tier, const YieldCheck* yield);
  void account(Tier tier, PassOutcome outcome, Nanoseconds took) GPUMETER_EXCLUDES(mutex_);
  std::unique_ptr<DriverGate::Place> enter(Nanoseconds allowed) GPUMETER_EXCLUDES(mutex_);
  void expect_by(Nanoseconds deadline) GPUMETER_EXCLUDES(mutex_);
  void set_state(State state, std::string trouble) GPUMETER_EXCLUDES(mutex_);

  // Lane thread only
  const std::unique_ptr<DeviceSession> session_;
  const std::shared_ptr<DriverGate> gate_;
  const Clock& clock_;
  const double stagger_;
  SamplingIntervals intervals_;
  TierSchedule schedule_;
  bool attached_ = false;
  bool was_silent_ = false;

  Worker worker_;
  Mailbox<Order> orders_;
  mutable Mutex mutex_;
  Status status_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
