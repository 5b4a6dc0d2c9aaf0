#pragma once

#include <sys/socket.h>

#include <chrono>

#include "base/mutex.hpp"

namespace gpumeter {

/// Holds the threads of a server in a callback of libmicrohttpd, so that none of them is elsewhere in the
/// library. MHD_quiesce_daemon() needs this: up to 1.0, one of its threads and the caller may both remove the
/// listening socket from the thread's epoll set, and the library then ends the process (MHD_PANIC,
/// "Failed to remove listen FD from epoll set"; daemon.c:5531 of 0.9.75). Any thread.
class Standstill {
 public:
  /// The address of a connection that holds the thread to which it is given. No client can have it, as with
  /// the probe's.
  static constexpr sockaddr kAddress{.sa_family = AF_UNSPEC, .sa_data = {1}};
  static bool is_asked_by(const sockaddr* peer) noexcept;

  void begin() GPUMETER_EXCLUDES(mutex_);
  /// Returns whether so many threads are held; waits for them for `patience` at most.
  bool holds(unsigned threads, std::chrono::milliseconds patience) GPUMETER_EXCLUDES(mutex_);
  /// Lets go the threads that are held, and those that come later.
  void end() noexcept GPUMETER_EXCLUDES(mutex_);

  /// Called on a thread of the library. Returns at end(), at once without begin().
  void hold() GPUMETER_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  Condition changed_;
  bool is_on_ GPUMETER_GUARDED_BY(mutex_) = false;
  unsigned held_ GPUMETER_GUARDED_BY(mutex_) = 0;
};

}  // namespace gpumeter
