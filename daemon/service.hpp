#pragma once

#include "base/clock.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// A part of the daemon with a thread of its own that nobody waits for. One thread calls all functions.
class Service {
 public:
  Service() = default;
  virtual ~Service() = default;
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  virtual Result<Done> start() = 0;
  virtual void request_stop() = 0;
  /// Returns false if the thread hangs and was left behind at `deadline` (monotonic).
  virtual bool join(Nanoseconds deadline) = 0;
};

}  // namespace gpumeter
