#include "daemon/watchdog.hpp"

#include <pthread.h>

#include <utility>

namespace gpumeter {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr int kTicksPerSecond = 10;

}  // namespace

Watchdog::Watchdog(const Clock& clock, std::function<void()> tick, std::function<void()> each_second)
    : clock_(clock), tick_(std::move(tick)), each_second_(std::move(each_second)) {
  last_tick_ = clock_.monotonic().count();
}

void Watchdog::start() {
  thread_ = std::thread([this] { run(); });
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
  for (int ticks = 0; !sleep(); ++ticks) {
    try {
      tick_();
      if (ticks % kTicksPerSecond == 0) each_second_();
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
