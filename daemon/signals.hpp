#pragma once

#include <chrono>
#include <csignal>
#include <optional>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// The process's signals, taken one by one by the main thread instead of by handlers: SIGTERM, SIGINT,
/// SIGHUP, SIGUSR1 and SIGUSR2. SIGPIPE is ignored: a client that went away is an error of its write.
class Signals {
 public:
  /// Blocks the signals in the calling thread. Call it before any other thread exists, which then inherit
  /// that. The mask is restored at the end.
  static Result<Signals> block();

  Signals(Signals&& other) = default;
  Signals& operator=(Signals&&) = delete;
  ~Signals();

  /// The next signal; nullopt when none came in time, or `other`, a descriptor, became readable before. -1:
  /// there is no other. Blocks for that time at the most.
  std::optional<int> wait(std::chrono::milliseconds at_most, int other = -1) noexcept;

 private:
  Signals(Descriptor fd, const sigset_t& previous) noexcept : fd_(std::move(fd)), previous_(previous) {}

  Descriptor fd_;
  sigset_t previous_;
};

}  // namespace gpumeter
