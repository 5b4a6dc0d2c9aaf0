#include "daemon/lane/lane.hpp"

#include <exception>
#include <utility>

namespace gpumeter {

std::unique_ptr<DriverGate::Place> DriverGate::enter(Nanoseconds allowed) {
  MutexLock lock(mutex_);
  while (is_full() && !closed_) changed_.wait_for(mutex_, std::chrono::seconds(1));
  if (closed_) return nullptr;
  const Nanoseconds deadline = *deadlines_.insert(clock_.monotonic() + allowed);
  return std::unique_ptr<Place>(new Place(*this, deadline));
}

void DriverGate::leave(Nanoseconds deadline) {
  MutexLock lock(mutex_);
  deadlines_.erase(deadlines_.find(deadline));
  changed_.notify_all();
}

bool DriverGate::is_stuck() const {
  MutexLock lock(mutex_);
  return is_full() && clock_.monotonic() > *deadlines_.rbegin();
}

void DriverGate::close() {
  MutexLock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

// A slow pass yields when the fast tier is due, because the sampling intervals have priority.
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
      schedule_(intervals, clock.monotonic(), stagger),
      worker_(clock) {
  orders_.post(Open{session_->identity().info});
}

// The thread closes the device, because closing may hang too.
Result<Done> Lane::start() {
  const std::string name = "lane-" + std::to_string(session_->identity().index);
  const std::shared_ptr<Lane> self = shared_from_this();
  set_state(State::starting, "");
  Result<Done> started = worker_.start(
      name, [self] { return self->turn(); }, [self] { self->session_->release(); });
  if (!started) set_state(State::lost, started.error().message());
  return started;
}

template <class IsObsolete>
void Lane::post(Order order, IsObsolete is_obsolete) {
  orders_.post(std::move(order), is_obsolete);
  worker_.wake();
}

void Lane::revive(const DeviceInfo& info) {
  post(Open{info}, [](const Order& old) { return std::holds_alternative<Open>(old); });
}

// Keeps a queued release: the device then ends as released, not as lost.
void Lane::lose(std::string why) {
  post(Close{State::lost, std::move(why)}, [](const Order& old) {
    const auto* close = std::get_if<Close>(&old);
    return std::holds_alternative<Open>(old) || (close != nullptr && close->state == State::lost);
  });
}

void Lane::release() {
  post(Close{State::released, ""}, [](const Order& old) { return !std::holds_alternative<Configure>(old); });
}

void Lane::configure(const SamplingIntervals& intervals, const std::string& name,
                     const DeviceLabels& labels) {
  post(Configure{intervals, name, labels},
       [](const Order& old) { return std::holds_alternative<Configure>(old); });
}

Lane::Status Lane::status() const {
  MutexLock lock(mutex_);
  return status_;
}

// Returns the pause until the next turn.
Nanoseconds Lane::turn() noexcept {
  try {
    if (!worker_.is_stopping()) work();
  } catch (const std::exception& problem) {  // only possible when attaching: out of memory
    attached_ = false;
    session_->hide();
    set_state(State::lost, problem.what());
  }
  const Nanoseconds now = clock_.monotonic();
  return attached_ ? schedule_.next(now).at - now : Worker::kForever;
}

void Lane::work() {
  for (const Order& order : orders_.take()) {
    std::visit([this](const auto& one) { obey(one); }, order);
  }
  if (!attached_) return;
  const TierSchedule::Turn turn = schedule_.next(clock_.monotonic());
  if (turn.at <= clock_.monotonic()) take_turn(turn.tier);
}

void Lane::obey(const Configure& order) {
  if (order.intervals != intervals_) {
    intervals_ = order.intervals;
    schedule_ = TierSchedule(intervals_, clock_.monotonic(), stagger_);
  }
  session_->relabel(order.name, order.labels);
}

void Lane::obey(const Close& order) {
  const State state = status().state;
  const bool is_closed = state == State::lost || state == State::released;
  if (order.state == State::lost && is_closed) return;
  expect_by(clock_.monotonic() + pass_deadline(Tier::fast));
  session_->release();
  attached_ = false;
  set_state(order.state, order.why);
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

// Reads all tiers at once, so that the first page is complete. Later passes follow the grid.
void Lane::first_passes() {
  for (const Tier tier : {Tier::once, Tier::fast, Tier::normal, Tier::slow}) {
    if (!attached_ || worker_.is_stopping()) return;
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

// Opens a device again when it answers again: some of its sources may have been unreadable the last time.
void Lane::follow_session() {
  const bool was_silent = std::exchange(was_silent_, session_->is_silent());
  if (was_silent_) return set_state(State::silent, session_->trouble());
  if (was_silent) return attach(session_->identity().info);
  if (has_more()) rebind();
}

// The check reads sources that failed before. It may hang, so it takes a place in the driver like a pass.
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

// A wait for a place does not count as hanging: the deadline starts at the entry.
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
