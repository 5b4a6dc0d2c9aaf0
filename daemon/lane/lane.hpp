#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "base/abandonable_thread.hpp"
#include "base/mutex.hpp"
#include "daemon/lane/device_session.hpp"
#include "daemon/lane/driver_gate.hpp"

namespace gpumeter {

/// One device's sampling thread. A driver call may hang in it for ever, so nobody waits for it: the thread
/// owns the lane together with its maker, and a lane that does not stop in time is left behind.
class Lane : public std::enable_shared_from_this<Lane> {
 public:
  enum class State : std::uint8_t {
    starting,
    reading,
    lost,
    released,
    silent,  ///< attached, but no read succeeds: tried again with each pass
  };

  /// What others may know of a lane, read without waiting for its driver.
  struct Status {
    State state = State::starting;
    std::optional<Nanoseconds> overdue_at;  ///< while a call is under way: when it is late (CLOCK_MONOTONIC)
    bool at_gate = false;                   ///< waits for its turn in the driver
    std::string trouble;                    ///< why it is not read; empty when all is well
    bool first_pass_over = false;
    std::array<double, 3> duration{};  ///< seconds of the last fast, normal and slow pass; 0: none yet
    Nanoseconds last_success{};        ///< CLOCK_REALTIME of the last pass with a good reading; 0: none yet
    ReadErrors errors{};
  };

  /// `stagger`: see TierSchedule.
  Lane(std::unique_ptr<DeviceSession> session, std::shared_ptr<DriverGate> gate, const Clock& clock,
       const SamplingIntervals& intervals, double stagger);

  /// Starts the thread. Once; again after an Error, which status() has as `trouble` until then.
  Result<Done> start() GPUMETER_EXCLUDES(mutex_);

  /// Asks the thread to end; does not wait.
  void request_stop() GPUMETER_EXCLUDES(mutex_);

  /// Waits for the thread's end until `deadline` (CLOCK_MONOTONIC); false: it hangs and was left behind.
  bool join(Nanoseconds deadline) { return thread_.join(clock_, deadline); }

  /// Discovery saw the device again, or saw it changed: attach to it as it is now.
  void revive(const DeviceInfo& info) GPUMETER_EXCLUDES(mutex_);

  /// Discovery does not find the device any more: closes it as soon as no call is under way, for revive() to
  /// open it again. Nothing where it is lost or released already.
  void lose(std::string why) GPUMETER_EXCLUDES(mutex_);

  /// Closes the device as soon as no call is under way; revive() opens it again.
  void release() GPUMETER_EXCLUDES(mutex_);

  /// New intervals, name and labels from the next turn on.
  void configure(const SamplingIntervals& intervals, const std::string& name, const DeviceLabels& labels)
      GPUMETER_EXCLUDES(mutex_);

  Status status() const GPUMETER_EXCLUDES(mutex_);

  /// Takes the device's series off the page until its next commit: its call is late. Any thread.
  void hide() { session_->hide(); }

 private:
  struct Orders {  // what others want of the thread
    bool stop = false;
    bool release = false;
    std::optional<std::string> lose;  // why
    std::optional<DeviceInfo> attach;
    bool configured = false;
    SamplingIntervals intervals;
    std::string name;
    DeviceLabels labels;
  };
  class FastFirst;

  void run() noexcept;
  bool wait_for_turn() GPUMETER_EXCLUDES(mutex_);
  void turn();
  void obey();
  void attach(const DeviceInfo& info);
  void close_device(State state, std::string trouble);
  void first_passes();
  void take_turn(Tier tier);
  void follow_session();
  bool has_more() GPUMETER_EXCLUDES(mutex_);
  void rebind();
  PassOutcome run_pass(Tier tier, const YieldCheck* yield);
  void account(Tier tier, PassOutcome outcome, Nanoseconds took) GPUMETER_EXCLUDES(mutex_);
  bool stopping() const GPUMETER_EXCLUDES(mutex_);
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

  AbandonableThread thread_;
  mutable Mutex mutex_;
  Condition changed_;
  Orders orders_ GPUMETER_GUARDED_BY(mutex_);
  Status status_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
