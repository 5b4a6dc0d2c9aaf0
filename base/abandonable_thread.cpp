#include "base/abandonable_thread.hpp"

#include <pthread.h>

#include <system_error>
#include <utility>

namespace gpumeter {

Result<Done> AbandonableThread::start(const std::string& name, std::function<void()> body) try {
  thread_ = std::thread([end = end_, short_name = name.substr(0, 15), run = std::move(body)]() mutable {
    pthread_setname_np(pthread_self(), short_name.c_str());
    run();
    run = nullptr;  // what it owned is gone before anybody hears of the end
    MutexLock lock(end->mutex);
    end->reached = true;
    end->changed.notify_all();
  });
  return Done{};
} catch (const std::system_error& problem) {
  return Error("cannot start the thread " + name + ": " + problem.code().message());
}

bool AbandonableThread::join(const Clock& clock, Nanoseconds deadline) {
  if (!thread_.joinable()) return true;
  bool ended = false;
  {
    MutexLock lock(end_->mutex);
    while (!end_->reached && clock.monotonic() < deadline) {
      end_->changed.wait_for(end_->mutex, deadline - clock.monotonic());
    }
    ended = end_->reached;
  }
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
  return ended;
}

}  // namespace gpumeter
