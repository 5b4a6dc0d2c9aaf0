#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

/// clang's -Wthread-safety checks these annotations. The types below carry them because libstdc++'s
/// std::mutex does not. For other compilers the annotations are empty.
#if defined(__clang__)
#define GPUMETER_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define GPUMETER_THREAD_ANNOTATION(x)
#endif
#define GPUMETER_GUARDED_BY(x) GPUMETER_THREAD_ANNOTATION(guarded_by(x))
#define GPUMETER_REQUIRES(...) GPUMETER_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define GPUMETER_EXCLUDES(...) GPUMETER_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace gpumeter {

class GPUMETER_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() GPUMETER_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() GPUMETER_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class GPUMETER_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) GPUMETER_THREAD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() GPUMETER_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// A condition variable for the annotated mutex. Every wait has a limit, so that no thread outlives a stop.
class Condition {
 public:
  template <class Rep, class Period>
  void wait_for(Mutex& mutex, std::chrono::duration<Rep, Period> at_most) GPUMETER_REQUIRES(mutex) {
    condition_.wait_for(mutex, at_most);
  }
  void notify_all() noexcept { condition_.notify_all(); }

 private:
  std::condition_variable_any condition_;
};

}  // namespace gpumeter
