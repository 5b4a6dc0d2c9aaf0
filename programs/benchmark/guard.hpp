#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "programs/benchmark/gpu.hpp"
#include "programs/benchmark/measure.hpp"

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

enum class End : std::uint8_t {
  finished,
  gave_way,  ///< another user appeared; nothing was measured
  stopped,   ///< it did not end in time, or a driver ended it
};

struct Supervised {
  End end = End::finished;
  std::string reason;  ///< unless it finished
  Outcome outcome;     ///< empty unless it finished
};

/// Runs `work` in a process of its own and kills it if `other_user` returns a reason, or at the limit.
/// Drivers hold a GPU only for a process, and only its end is certain to return all of it, also while a call
/// hangs. `other_user` is called five times a second with the process's pid. Only single-threaded callers: it
/// forks.
Supervised supervise(const std::function<Outcome()>& work, std::chrono::milliseconds limit,
                     const std::function<std::optional<std::string>(int)>& other_user);

/// Looks for a user of the GPU other than the process `own`; returns a sentence that names it, or nullopt. A
/// list that cannot be read is a reason to give way too. Takes a few milliseconds.
using Watch = std::function<std::optional<std::string>(int own)>;

/// All that can see users of the GPU: the driver's list of processes, if there is one, and the daemon.
/// `daemon` must outlive the watches.
std::vector<Watch> watches_of(Daemon& daemon, const Gpu& gpu);

/// Whether `cgroup` lies in the workload: its path has the workload's name.
bool is_part_of(std::string_view cgroup, const Holder& holder) noexcept;

}  // namespace gpumeter::benchmark
