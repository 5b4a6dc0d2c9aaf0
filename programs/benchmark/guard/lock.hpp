#pragma once

#include <optional>
#include <string>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace gpumeter::benchmark {

/// The lock of all benchmarks of the machine. It ends with the process. One thread.
///
/// It is also the way to stop a benchmark: while one runs, it gives way to whoever opens the file. A prolog
/// therefore runs `flock /run/gpumeter/benchmark.lock true`, which returns when no benchmark runs any more.
class Lock {
 public:
  /// Creates the file if it is missing. Waits up to 2 s for a holder that gives way. The Error says who must
  /// change what.
  static Result<Lock> take(const std::string& path);

  /// True if another process has opened the file since the lock was taken.
  bool is_wanted() noexcept;

 private:
  Lock(Descriptor file, Descriptor openings) : file_(std::move(file)), openings_(std::move(openings)) {}

  Descriptor file_;
  Descriptor openings_;  ///< inotify(7)
};

}  // namespace gpumeter::benchmark
