#include "exporter/http/reaper.hpp"

#include <pthread.h>

#include <chrono>
#include <system_error>

namespace gpumeter {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(250);

}  // namespace

Result<Done> HttpReaper::start() {
  try {
    thread_ = std::thread([this] { run(); });
    return Done{};
  } catch (const std::system_error& problem) {
    return Error(problem.what()).with("cannot start the thread http-reaper");
  }
}

void HttpReaper::stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void HttpReaper::run() noexcept {
  pthread_setname_np(pthread_self(), "http-reaper");
  while (!sleep()) {
    try {
      connections_.look();
    } catch (...) {  // out of memory: deadlines were checked before, and the next look makes up for the rest
    }
  }
}

// True: stop.
bool HttpReaper::sleep() {
  const auto until = std::chrono::steady_clock::now() + kInterval;
  MutexLock lock(mutex_);
  while (!stop_ && std::chrono::steady_clock::now() < until) {
    changed_.wait_for(mutex_, until - std::chrono::steady_clock::now());
  }
  return stop_;
}

}  // namespace gpumeter
