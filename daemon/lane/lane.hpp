#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/mutex.hpp"
#include "base/worker.hpp"
#include "daemon/lane/device_session.hpp"
#include "daemon/lane/driver_gate.hpp"

namespace gpumeter {

/// One device's sampling thread. A driver call may hang in it forever, so nobody waits for the thread: it
/// owns the lane together with the fleet, and a lane that does not stop in time is left behind. Orders are
/// queued; the thread obeys them between two driver calls.
class Lane : public std::enable_shared_from_this<Lane> {
 public:
  enum class State : std::uint8_t {
    starting,
    reading,
    lost,
    released,
    silent,  ///< attached, but no read succeeds: tried again with each pass
  };

  /// Read without waiting for the driver.
  struct Status {
    State state = State::starting;
    std::optional<Nanoseconds> overdue_at;  ///< while a call is under way: when it is late (CLOCK_MONOTONIC)
    bool at_gate = false;                   ///< waits for a place in the driver
    std::string trouble;                    ///< why it is not read; empty when all is well
    bool first_pass_over = false;
    std::array<double, 3> duration{};  ///< seconds of the last fast, normal and slow pass; 0: none yet
    Nanoseconds last_success{};        ///< CLOCK_REALTIME of the last pass with a good reading; 0: none yet
    ReadErrors errors{};
  };

  /// `stagger`: see TierSchedule.
  Lane(std::unique_ptr<DeviceSession> session, std::shared_ptr<DriverGate> gate, const Clock& clock,
       const SamplingIntervals& intervals, double stagger);

  /// Starts the thread. Once; again after an Error, which status() returns as `trouble` until then.
  Result<Done> start() GPUMETER_EXCLUDES(mutex_);

  /// As in Worker.
  void request_stop() { worker_.request_stop(); }
  bool join(Nanoseconds deadline) { return worker_.join(deadline); }

  /// Discovery found the device again, or found it changed: opens it as it is now.
  void revive(const DeviceInfo& info);

  /// Discovery no longer finds the device: closes it until revive(). Does nothing if it is closed already.
  void lose(std::string why);

  /// Closes the device until revive().
  void release();

  /// Sets intervals, name and labels.
  void configure(const SamplingIntervals& intervals, const std::string& name, const DeviceLabels& labels);

  Status status() const GPUMETER_EXCLUDES(mutex_);

  /// Takes the device's series off the page until its next commit: its call is late. Any thread.
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
