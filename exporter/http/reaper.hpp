#pragma once

#include <thread>

#include "base/mutex.hpp"
#include "base/result.hpp"
#include "exporter/http/connections.hpp"

namespace gpumeter {

/// The thread ("http-reaper") that looks through the book of connections four times a second.
class HttpReaper {
 public:
  explicit HttpReaper(HttpConnections& connections) : connections_(connections) {}
  HttpReaper(const HttpReaper&) = delete;
  HttpReaper& operator=(const HttpReaper&) = delete;
  ~HttpReaper() { stop(); }

  /// An Error if the thread cannot be made.
  Result<Done> start();
  void stop() GPUMETER_EXCLUDES(mutex_);

 private:
  void run() noexcept;
  bool sleep() GPUMETER_EXCLUDES(mutex_);

  HttpConnections& connections_;
  std::thread thread_;
  Mutex mutex_;
  Condition changed_;
  bool stop_ GPUMETER_GUARDED_BY(mutex_) = false;
};

}  // namespace gpumeter
