#pragma once

#include <pthread.h>

#include <cstddef>

namespace gpumeter {

/// While an object exists, the kernel creates no thread for this process, as at pids.max: each thread would
/// need a stack larger than the address space. One at a time.
class NoThreads {
 public:
  NoThreads() {
    pthread_attr_t attributes;
    pthread_getattr_default_np(&attributes);
    pthread_attr_getstacksize(&attributes, &stack_size_);
    set(std::size_t{1} << 47);
    pthread_attr_destroy(&attributes);
  }
  ~NoThreads() { set(stack_size_); }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  static void set(std::size_t stack_size) {
    pthread_attr_t attributes;
    pthread_getattr_default_np(&attributes);
    pthread_attr_setstacksize(&attributes, stack_size);
    pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
  }
  std::size_t stack_size_ = 0;
};

}  // namespace gpumeter
