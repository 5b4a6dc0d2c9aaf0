#include "daemon/fleet/discoverer.hpp"

#include <exception>
#include <string>
#include <utility>

namespace gpumeter {
namespace {

// Uevents tell of hot plug at once; this finds what they do not tell of, such as a driver loaded late.
constexpr auto kEvery = std::chrono::seconds(60);

// As long as an attach may take: nvmlInit on a machine of 16 GPUs takes some seconds.
constexpr auto kDeadline = std::chrono::seconds(10);
// While a device does not say what it is.
constexpr auto kEveryIncomplete = std::chrono::seconds(5);

}  // namespace

Discoverer::Discoverer(const CollectorEntry& entry, CollectorContext context, Report report)
    : entry_(entry), context_(std::move(context)), report_(std::move(report)) {}

Result<Done> Discoverer::start() {
  set_busy(true);
  Result<Done> started =
      thread_.start("find-" + std::string(entry_.name), [self = shared_from_this()] { self->run(); });
  if (!started) set_busy(false);
  return started;
}

void Discoverer::request() {
  MutexLock lock(mutex_);
  requested_ = true;
  changed_.notify_all();
}

void Discoverer::pause(bool paused) {
  MutexLock lock(mutex_);
  paused_ = paused;
  requested_ = true;
  changed_.notify_all();
}

void Discoverer::request_stop() {
  MutexLock lock(mutex_);
  stop_ = true;
  changed_.notify_all();
}

bool Discoverer::is_busy() const {
  MutexLock lock(mutex_);
  return busy_since_.has_value();
}

bool Discoverer::is_late() const {
  MutexLock lock(mutex_);
  return busy_since_ && context_.clock->monotonic() > *busy_since_ + kDeadline;
}

// The collector is closed here, since closing a driver may hang too.
void Discoverer::run() noexcept {
  do {
    set_busy(true);
    try {
      discover();
    } catch (const std::exception& problem) {  // a collector must not throw; one that does only hurts itself
      report_(nullptr, Error(problem.what()));
    }
    set_busy(false);
  } while (wait_for_request());
  collector_.reset();
}

void Discoverer::discover() {
  if (is_paused()) return collector_.reset();
  if (!collector_) {
    Result<std::unique_ptr<Collector>> opened = entry_.open(context_);
    if (!opened) return report_(nullptr, opened.error());
    collector_ = *std::move(opened);
  }
  Result<Discovery> found = collector_->discover();
  is_incomplete_ = found && found->is_incomplete;
  report_(collector_, std::move(found));
}

bool Discoverer::is_paused() const {
  MutexLock lock(mutex_);
  return paused_;
}

// False: stop.
bool Discoverer::wait_for_request() {
  const Nanoseconds until = context_.clock->monotonic() + (is_incomplete_ ? kEveryIncomplete : kEvery);
  MutexLock lock(mutex_);
  while (!stop_ && !requested_ && context_.clock->monotonic() < until) {
    changed_.wait_for(mutex_, until - context_.clock->monotonic());
  }
  requested_ = false;
  return !stop_;
}

void Discoverer::set_busy(bool busy) {
  MutexLock lock(mutex_);
  busy_since_ = busy ? std::optional(context_.clock->monotonic()) : std::nullopt;
}

}  // namespace gpumeter
