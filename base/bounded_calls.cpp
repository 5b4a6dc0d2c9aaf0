#include "base/bounded_calls.hpp"

#include <exception>

#include "base/worker.hpp"

namespace gpumeter {

// Returns false if the kernel refused a thread.
bool BoundedCalls::run(const std::vector<std::string>& keys, const Call& call) {
  std::vector<std::string> free;
  for (const std::string& key : keys) {
    if (!progress_->hanging->contains(progress_->scope + key)) free.push_back(key);
  }
  const auto shared = std::make_shared<const std::vector<std::string>>(std::move(free));
  std::size_t next = 0;
  while (next < shared->size()) {
    if (!start_walk(shared, next, call)) return false;
    const std::optional<std::size_t> silent = wait_for_silence(*shared);
    next = silent ? *silent + 1 : shared->size();
  }
  return true;
}

// The thread is not joined. After its last call, it touches only the shared progress.
bool BoundedCalls::start_walk(const Keys& keys, std::size_t from, const Call& call) {
  std::uint64_t number = 0;
  {
    MutexLock lock(progress_->mutex);
    number = ++progress_->walk;
    progress_->at = from;
  }
  Worker worker(clock_);
  const auto started = worker.start(thread_, [progress = progress_, number, keys, from, call] {
    walk(*progress, number, *keys, from, call);
    return std::nullopt;
  });
  return static_cast<bool>(started);
}

void BoundedCalls::walk(Progress& progress, std::uint64_t number, const std::vector<std::string>& keys,
                        std::size_t from, const Call& call) {
  for (std::size_t i = from; i < keys.size(); ++i) {
    try {
      call(keys[i]);
    } catch (const std::exception&) {  // no answer
    }
    MutexLock lock(progress.mutex);
    if (progress.walk != number) {
      progress.hanging->remove(progress.scope + keys[i]);
      return;
    }
    progress.at = i + 1;
    progress.changed.notify_all();
  }
}

// Returns nullopt when the walk has ended, or the index of a call that exceeded its limit. The walk is then
// left behind.
std::optional<std::size_t> BoundedCalls::wait_for_silence(const std::vector<std::string>& keys) {
  MutexLock lock(progress_->mutex);
  std::size_t seen = progress_->at;
  Nanoseconds until = clock_.monotonic() + at_most_;
  while (progress_->at < keys.size()) {
    const Nanoseconds now = clock_.monotonic();
    if (progress_->at != seen) {
      seen = progress_->at;
      until = now + at_most_;
    } else if (now >= until) {
      ++progress_->walk;
      progress_->hanging->add(progress_->scope + keys[seen]);
      return seen;
    }
    progress_->changed.wait_for(progress_->mutex, until - now);
  }
  return std::nullopt;
}

}  // namespace gpumeter
