#include "daemon/upkeep.hpp"

#include <exception>

namespace gpumeter {
namespace {

constexpr auto kEvery = std::chrono::seconds(1);

}  // namespace

Result<Done> Upkeep::start() {
  return thread_.start("upkeep", [self = shared_from_this()] { self->run(); });
}

void Upkeep::request() {
  MutexLock lock(mutex_);
  requested_ = true;
  changed_.notify_all();
}

void Upkeep::request_stop() {
  MutexLock lock(mutex_);
  stop_ = true;
  changed_.notify_all();
}

void Upkeep::run() noexcept {
  do {
    try {
      each_second_();
    } catch (const std::exception&) {  // out of memory: the page stays as it was
    }
  } while (!sleep());
}

// True: stop.
bool Upkeep::sleep() {
  const Nanoseconds until = clock_.monotonic() + kEvery;
  MutexLock lock(mutex_);
  while (!stop_ && !requested_ && clock_.monotonic() < until) {
    changed_.wait_for(mutex_, until - clock_.monotonic());
  }
  requested_ = false;
  return stop_;
}

}  // namespace gpumeter
