#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
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
  Daemon(client::Address address, const client::Access& access);

  /// All GPUs with all that parse_gpus() knows. The Error names a remedy.
  Result<std::vector<Gpu>> gpus();

 private:
  Result<std::string> body(const char* path);

  client::HttpClient client_;
};

}  // namespace gpumeter::benchmark
