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
#include "programs/benchmark/measure.hpp"
#include "programs/client/http.hpp"

namespace gpumeter::benchmark {

// The machine's GPUs as the daemon shows them.

/// Who uses a GPU, by the daemon's attribution.
struct Holder {
  std::string kind;      ///< slurm_job, pod, unit, user, ...
  std::string workload;  ///< its name
};

/// What the daemon knows of a GPU. nullopt: the GPU does not report it.
struct Gpu {
  std::string index, uuid, vendor, model, pci_address;
  bool is_up = false;
  bool is_suspended = false;
  std::string state;                          ///< of gpu_health: ok, degraded, failed, unknown
  std::optional<double> utilization;          ///< 0 to 1, now
  std::optional<double> highest_utilization;  ///< of the last 5 minutes, as far as they are known
  std::optional<double> memory_used, memory_size;
  std::optional<double> temperature;  ///< degrees Celsius
  std::optional<double> power_limit;  ///< watts
  std::vector<Holder> holders;
  bool is_exclusive = false;  ///< a compute mode in which a second process cannot use the GPU
  bool is_divided = false;    ///< MIG
  std::string driver_version;
};

/// Parses the answers of /api/v1/live?sparklines=1 and of /api/v1/series for gpu_mode and gpu_info. Any
/// thread.
Result<std::vector<Gpu>> parse_gpus(std::string_view live, std::string_view series);

/// The reason why the GPU must not be measured now, as a sentence; nullopt: nothing speaks against it. A
/// value that the GPU does not report is no reason.
std::optional<std::string> why_not(const Gpu& gpu);

/// The GPU with this number, uuid or PCI address; null if there is none.
const Gpu* find_gpu(const std::vector<Gpu>& gpus, std::string_view name);

/// A daemon that restarts, or whose machine is busy, is silent for a moment. While a benchmark runs, the
/// drivers' lists go on meanwhile.
constexpr std::chrono::seconds kLongestSilence{3};

/// The daemon, asked over HTTP. Blocks up to 250 ms a request. One thread.
class Daemon {
 public:
  explicit Daemon(client::Address address);

  /// All GPUs with all that parse_gpus() knows. The Error names a remedy.
  Result<std::vector<Gpu>> gpus();

 private:
  Result<std::string> body(const char* path);

  client::HttpClient client_;
};

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
