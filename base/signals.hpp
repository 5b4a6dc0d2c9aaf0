#pragma once

#include <chrono>
#include <csignal>
#include <optional>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// The process's signals, read by the main thread instead of handlers: SIGTERM, SIGINT, SIGHUP, SIGUSR1 and
/// SIGUSR2. SIGPIPE is ignored: the write to a closed connection returns an error.
class Signals {
 public:
  /// Blocks the signals in the calling thread. Call it before any other thread starts: new threads inherit
  /// the mask. The destructor restores the mask.
  static Result<Signals> block();

  Signals(Signals&& other) = default;
  Signals& operator=(Signals&&) = delete;
  ~Signals();

  /// Waits for at most `at_most` and returns the next signal. Returns nullopt if no signal came in time, or
  /// if the descriptor `other` became readable first. -1: there is no other descriptor.
  std::optional<int> wait(std::chrono::milliseconds at_most, int other = -1) noexcept;

 private:
  Signals(Descriptor fd, const sigset_t& previous) noexcept : fd_(std::move(fd)), previous_(previous) {}

  Descriptor fd_;
  sigset_t previous_;
};

}  // namespace gpumeter
