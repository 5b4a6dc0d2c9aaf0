#include "programs/benchmark/gpu.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "collectors/sources/pci.hpp"

namespace gpumeter::benchmark {
namespace {

// An idle GPU's driver holds up to 2 % of the memory, and its clocks and voltages are those of a cool chip.
constexpr double kMostMemoryShare = 0.02;
constexpr double kMostCelsius = 60;
constexpr double kMostUtilization = 0.02;

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", share * 100);
  return text;
}

}  // namespace

std::optional<std::string> why_not(const Gpu& gpu) {
  if (!gpu.is_up) return "the daemon cannot read it";
  if (gpu.is_suspended) return "it sleeps";
  if (gpu.is_divided) return "it is divided into MIG instances";
  if (gpu.is_exclusive)
    return "its compute mode is exclusive, so the benchmark would keep a job from starting";
  for (const Holder& holder : gpu.holders) return "the " + holder.kind + " " + holder.workload + " uses it";
  const double busy = std::max(gpu.utilization.value_or(0), gpu.highest_utilization.value_or(0));
  if (busy > kMostUtilization) return "it was " + percent(busy) + " busy within the last 5 minutes";
  if (gpu.memory_used && gpu.memory_size && *gpu.memory_used > kMostMemoryShare * *gpu.memory_size)
    return percent(*gpu.memory_used / *gpu.memory_size) + " of its memory is used";
  if (gpu.temperature && *gpu.temperature >= kMostCelsius) return "it is hotter than 60 °C";
  return std::nullopt;
}

const Gpu* find_gpu(const std::vector<Gpu>& gpus, std::string_view name) {
  const auto address = pci::parse_address(name);
  const auto found = std::ranges::find_if(gpus, [&](const Gpu& gpu) {
    return gpu.index == name || gpu.uuid == name ||
           (address && pci::parse_address(gpu.pci_address) == address);
  });
  return found == gpus.end() ? nullptr : &*found;
}

namespace {

using Json = nlohmann::json;

/// Null if `object` is none or has no such field.
const Json& field(const Json& object, const char* key) {
  static const Json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

/// Control characters (C0, DEL, C1) do not reach the terminal.
std::string text(const Json& object, const char* key) {
  const Json& value = field(object, key);
  return value.is_string() ? readable(value.get_ref<const std::string&>(), is_control) : std::string();
}

std::optional<double> number(const Json& object, const char* key) {
  const Json& value = field(object, key);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

bool is_true(const Json& object, const char* key) {
  const Json& value = field(object, key);
  return value.is_boolean() && value.get<bool>();
}

/// The elements of a list; none if the field is no list.
template <class Take>
void each(const Json& object, const char* key, Take take) {
  const Json& list = field(object, key);
  if (!list.is_array()) return;
  for (const Json& element : list) take(element);
}

Gpu gpu_of(const Json& json) {
  Gpu gpu;
  gpu.index = text(json, "gpu");
  gpu.uuid = text(json, "uuid");
  gpu.vendor = text(json, "vendor");
  gpu.model = text(json, "model");
  gpu.pci_address = text(json, "pci_address");
  gpu.state = text(json, "state");
  gpu.is_up = is_true(json, "up");
  gpu.is_suspended = is_true(json, "suspended");
  const Json& values = field(json, "values");
  gpu.utilization = number(values, "utilization_ratio");
  gpu.memory_used = number(values, "memory_used_bytes");
  gpu.memory_size = number(json, "memory_size_bytes");
  gpu.temperature = number(values, "temperature_celsius");
  gpu.power_limit = number(values, "power_limit_watts");
  each(json, "utilization", [&](const Json& past) {
    if (past.is_number())
      gpu.highest_utilization = std::max(gpu.highest_utilization.value_or(0), past.get<double>());
  });
  each(json, "holders", [&](const Json& holder) {
    if (text(holder, "kind") != "unattributed")
      gpu.holders.push_back({text(holder, "kind"), text(holder, "workload")});
  });
  return gpu;
}

/// Adds a series of gpu_mode or gpu_info to its GPU.
void add(std::vector<Gpu>& gpus, const Json& series) {
  const Json& labels = field(series, "labels");
  const auto gpu = std::ranges::find(gpus, text(labels, "uuid"), &Gpu::uuid);
  if (gpu == gpus.end() || number(series, "value") != 1.0) return;
  const std::string mode = text(labels, "mode");
  const std::string state = text(labels, "state");
  if (text(series, "name") == "gpu_info") gpu->driver_version = text(labels, "driver_version");
  if (mode == "compute" && state != "default") gpu->is_exclusive = true;
  if (mode == "mig" && state == "enabled") gpu->is_divided = true;
}

}  // namespace

Result<std::vector<Gpu>> parse_gpus(std::string_view live, std::string_view series) {
  const Json root = Json::parse(live, nullptr, false);
  if (root.is_discarded() || !field(root, "gpus").is_array())
    return Error("/api/v1/live: the answer has no list \"gpus\"; is this gpumeter?");
  const Json details = Json::parse(series, nullptr, false);
  if (details.is_discarded() || !field(details, "series").is_array())
    return Error("/api/v1/series: the answer has no list \"series\"; is this gpumeter?");
  std::vector<Gpu> gpus;
  each(root, "gpus", [&](const Json& gpu) { gpus.push_back(gpu_of(gpu)); });
  each(details, "series", [&](const Json& one) { add(gpus, one); });
  return gpus;
}

// The daemon answers from memory. While a benchmark runs, a process is noticed between two answers.
Daemon::Daemon(client::Address address, const client::Access& access)
    : client_(std::move(address), access,
              {std::chrono::milliseconds(250), std::chrono::milliseconds(250), std::size_t{16} << 20U},
              "gpumeter-benchmark") {}

Result<std::string> Daemon::body(const char* path) {
  Result<client::HttpClient::Answer> answer = client_.get(path);
  if (client_.was_refused())
    return Error("no daemon listens there; start gpumeter, or give its address by --url");
  if (!answer) return answer.error().with("the daemon");
  if (answer->status == 401) return Error("the daemon requires a user; use --login-file");
  if (answer->status != 200) return Error(std::string(path) + ": status " + std::to_string(answer->status));
  return std::move(answer->body);
}

Result<std::vector<Gpu>> Daemon::gpus() {
  const Result<std::string> live = body("/api/v1/live?sparklines=1");
  if (!live) return live.error();
  const Result<std::string> series = body("/api/v1/series?match=gpu_mode&match=gpu_info");
  if (!series) return series.error();
  return parse_gpus(*live, *series);
}

}  // namespace gpumeter::benchmark
