#include "daemon/watchdog.hpp"

#include <pthread.h>

#include <system_error>
#include <utility>

namespace gpumeter {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);

}  // namespace

Watchdog::Watchdog(const Clock& clock, std::function<void()> tick) : clock_(clock), tick_(std::move(tick)) {
  last_tick_ = clock_.monotonic().count();
}

Result<Done> Watchdog::start() try {
  thread_ = std::thread([this] { run(); });
  return Done{};
} catch (const std::system_error& problem) {
  return Error("cannot start the thread watchdog: " + problem.code().message());
}

void Watchdog::stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Watchdog::run() noexcept {
  pthread_setname_np(pthread_self(), "watchdog");
  while (!sleep()) {
    try {
      tick_();
      last_tick_ = clock_.monotonic().count();
    } catch (...) {  // out of memory: no tick is reported, and systemd restarts the daemon if it lasts
    }
  }
}

// True: stop.
bool Watchdog::sleep() {
  const Nanoseconds until = clock_.monotonic() + kTick;
  MutexLock lock(mutex_);
  while (!stop_ && clock_.monotonic() < until) changed_.wait_for(mutex_, until - clock_.monotonic());
  return stop_;
}

}  // namespace gpumeter
