#include "daemon/lane/lane.hpp"

#include <exception>
#include <utility>

namespace gpumeter {

// A slow pass steps aside when the fast tier is due: cadence first.
class Lane::FastFirst final : public YieldCheck {
 public:
  FastFirst(const TierSchedule& schedule, const Clock& clock) : schedule_(schedule), clock_(clock) {}
  bool should_yield() const noexcept override { return schedule_.is_due(Tier::fast, clock_.monotonic()); }

 private:
  const TierSchedule& schedule_;
  const Clock& clock_;
};

Lane::Lane(std::unique_ptr<DeviceSession> session, std::shared_ptr<DriverGate> gate, const Clock& clock,
           const SamplingIntervals& intervals, double stagger)
    : session_(std::move(session)),
      gate_(std::move(gate)),
      clock_(clock),
      stagger_(stagger),
      intervals_(intervals),
      schedule_(intervals, clock.monotonic(), stagger) {
  MutexLock lock(mutex_);
  orders_.attach = session_->identity().info;
}

Result<Done> Lane::start() {
  const std::string name = "lane-" + std::to_string(session_->identity().index);
  Result<Done> started = thread_.start(name, [self = shared_from_this()] { self->run(); });
  if (!started) set_state(State::lost, started.error().message());
  return started;
}

void Lane::request_stop() {
  MutexLock lock(mutex_);
  orders_.stop = true;
  changed_.notify_all();
}

void Lane::revive(const DeviceInfo& info) {
  MutexLock lock(mutex_);
  orders_.attach = info;
  changed_.notify_all();
}

void Lane::lose(std::string why) {
  MutexLock lock(mutex_);
  if (status_.state == State::lost || status_.state == State::released) return;
  orders_.lose = std::move(why);
  orders_.attach.reset();
  changed_.notify_all();
}

void Lane::release() {
  MutexLock lock(mutex_);
  orders_.release = true;
  orders_.attach.reset();
  changed_.notify_all();
}

void Lane::configure(const SamplingIntervals& intervals, const std::string& name,
                     const DeviceLabels& labels) {
  MutexLock lock(mutex_);
  orders_.configured = true;
  orders_.intervals = intervals;
  orders_.name = name;
  orders_.labels = labels;
  changed_.notify_all();
}

Lane::Status Lane::status() const {
  MutexLock lock(mutex_);
  return status_;
}

// The device is closed here, since closing it may hang too.
void Lane::run() noexcept {
  set_state(State::starting, "");
  while (wait_for_turn()) {
    try {
      turn();
    } catch (const std::exception& problem) {  // out of memory while attaching, at the most
      attached_ = false;
      session_->hide();
      set_state(State::lost, problem.what());
    }
  }
  session_->release();
}

void Lane::turn() {
  obey();
  if (!attached_) return;
  const TierSchedule::Turn turn = schedule_.next(clock_.monotonic());
  if (turn.at <= clock_.monotonic()) take_turn(turn.tier);
}

// Until there is an order or a tier is due. False: stop.
bool Lane::wait_for_turn() {
  constexpr Nanoseconds kUntilOrdered = std::chrono::hours(1);
  MutexLock lock(mutex_);
  while (!orders_.stop && !orders_.attach && !orders_.configured && !orders_.release && !orders_.lose) {
    const Nanoseconds now = clock_.monotonic();
    const Nanoseconds wait = attached_ ? schedule_.next(now).at - now : kUntilOrdered;
    if (wait <= Nanoseconds{0}) break;
    changed_.wait_for(mutex_, wait);
  }
  return !orders_.stop;
}

void Lane::obey() {
  Orders orders;
  {
    MutexLock lock(mutex_);
    orders = std::exchange(orders_, Orders{});
    orders_.stop = orders.stop;
  }
  if (orders.configured) {
    intervals_ = orders.intervals;
    schedule_ = TierSchedule(intervals_, clock_.monotonic(), stagger_);
    session_->relabel(orders.name, orders.labels);
  }
  if (orders.lose && !orders.release) close_device(State::lost, *orders.lose);
  if (orders.release) close_device(State::released, "");
  if (orders.attach) attach(*orders.attach);
}

void Lane::close_device(State state, std::string trouble) {
  expect_by(clock_.monotonic() + pass_deadline(Tier::fast));
  session_->release();
  attached_ = false;
  set_state(state, std::move(trouble));
}

void Lane::attach(const DeviceInfo& info) {
  std::unique_ptr<DriverGate::Place> place = enter(pass_deadline(Tier::once));
  if (!place) return;  // stopping
  const Result<Done> opened = session_->attach(info);
  place.reset();
  attached_ = static_cast<bool>(opened);
  set_state(attached_ ? State::starting : State::lost, attached_ ? "" : opened.error().message());
  if (attached_) first_passes();
}

// All tiers at once, so that the first page is whole; from then on by the grid.
void Lane::first_passes() {
  for (const Tier tier : {Tier::once, Tier::fast, Tier::normal, Tier::slow}) {
    if (!attached_ || stopping()) return;
    run_pass(tier, nullptr);
  }
  if (!attached_) return;
  schedule_ = TierSchedule(intervals_, clock_.monotonic(), stagger_);
  for (const Tier tier : kTiers) schedule_.done(tier, clock_.monotonic(), session_->failed_reads(tier));
  was_silent_ = session_->is_silent();
  set_state(was_silent_ ? State::silent : State::reading, was_silent_ ? session_->trouble() : "");
}

void Lane::take_turn(Tier tier) {
  const FastFirst fast_first(schedule_, clock_);
  const PassOutcome outcome = run_pass(tier, tier == Tier::fast ? nullptr : &fast_first);
  if (outcome != PassOutcome::interrupted) {
    schedule_.done(tier, clock_.monotonic(), session_->failed_reads(tier));
  }
  if (attached_ && tier == Tier::fast) follow_session();
}

// A device that answers again is opened again: what it has may have been unreadable the last time.
void Lane::follow_session() {
  const bool was_silent = std::exchange(was_silent_, session_->is_silent());
  if (was_silent_) return set_state(State::silent, session_->trouble());
  if (was_silent) return attach(session_->identity().info);
  if (has_more()) rebind();
}

// It asks sources that were in trouble, so it takes a place in the driver, and may hang, as a pass may.
bool Lane::has_more() {
  const std::unique_ptr<DriverGate::Place> place = enter(pass_deadline(Tier::fast));
  if (!place) return false;  // stopping
  const bool more = session_->has_more();
  MutexLock lock(mutex_);
  status_.overdue_at.reset();
  return more;
}

void Lane::rebind() {
  std::unique_ptr<DriverGate::Place> place = enter(pass_deadline(Tier::once));
  if (!place) return;  // stopping
  const PassOutcome outcome = session_->rebind(intervals_);
  place.reset();
  account(Tier::once, outcome, Nanoseconds{0});
  if (outcome == PassOutcome::gone) {
    session_->lose();
    attached_ = false;
  }
}

PassOutcome Lane::run_pass(Tier tier, const YieldCheck* yield) {
  std::unique_ptr<DriverGate::Place> place = enter(pass_deadline(tier));
  if (!place) return PassOutcome::complete;  // stopping
  const Nanoseconds start = clock_.monotonic();
  const PassOutcome outcome = session_->run(tier, intervals_, yield);
  const Nanoseconds took = clock_.monotonic() - start;
  place.reset();
  if (outcome == PassOutcome::gone) {
    session_->lose();
    attached_ = false;
  }
  account(tier, outcome, took);
  return outcome;
}

void Lane::account(Tier tier, PassOutcome outcome, Nanoseconds took) {
  MutexLock lock(mutex_);
  status_.overdue_at.reset();
  status_.errors = session_->errors();
  if (outcome == PassOutcome::gone) {
    status_.state = State::lost;
    status_.first_pass_over = true;
  }
  const bool is_read = outcome == PassOutcome::complete || outcome == PassOutcome::partial;
  if (!is_read && outcome != PassOutcome::asleep) return;
  status_.last_success = clock_.realtime();
  const auto place = static_cast<std::size_t>(tier);
  if (place < status_.duration.size()) status_.duration[place] = to_seconds(took);
}

bool Lane::stopping() const {
  MutexLock lock(mutex_);
  return orders_.stop;
}

// To wait for one's turn is not to hang: the deadline is counted from the entry.
std::unique_ptr<DriverGate::Place> Lane::enter(Nanoseconds allowed) {
  {
    MutexLock lock(mutex_);
    status_.at_gate = true;
  }
  std::unique_ptr<DriverGate::Place> place = gate_->enter(allowed);
  if (place) expect_by(place->deadline());
  return place;
}

void Lane::expect_by(Nanoseconds deadline) {
  MutexLock lock(mutex_);
  status_.at_gate = false;
  status_.overdue_at = deadline;
}

void Lane::set_state(State state, std::string trouble) {
  MutexLock lock(mutex_);
  status_.overdue_at.reset();
  status_.state = state;
  status_.trouble = std::move(trouble);
  if (state != State::starting) status_.first_pass_over = true;
}

}  // namespace gpumeter
