#include "exporter/history/observe.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace gpumeter {
namespace {

/// A series of the walk.
struct Row {
  explicit Row(const Labels& labels, double its_value)
      : value(its_value), pairs(labels.pairs()), order(labels.order()) {}

  std::string_view operator[](std::string_view label) const noexcept {
    const auto found = std::ranges::find(pairs, label, &Labels::Pair::first);
    return found == pairs.end() ? std::string_view() : found->second;
  }
  std::string text(std::string_view label) const { return std::string((*this)[label]); }

  double value;
  std::vector<Labels::Pair> pairs;
  unsigned order;
};

/// The picture while it is made, with its parts by their keys.
struct Draft {
  std::map<std::string, GpuPicture, std::less<>> gpus;  // by uuid
  std::map<GpuRun, RunPicture> runs;
  std::map<std::pair<std::string, std::string>, std::string> users;  // by kind and workload
  bool is_simulated = false;

  GpuPicture& gpu(const Row& row) {
    const auto [found, is_new] = gpus.try_emplace(row.text("uuid"));
    GpuPicture& gpu = found->second;
    if (!is_new) return gpu;
    gpu.uuid = found->first;
    gpu.values.fill(kAbsent);
    return gpu;
  }
  RunPicture& run(const Row& row) {
    const auto [found, is_new] = runs.try_emplace({row.text("run"), row.text("user")});
    if (is_new) {
      found->second.run = found->first.run;
      found->second.user = found->first.user;
    }
    return found->second;
  }
};

void set(Draft& draft, const Row& row, Quantity quantity) {
  draft.gpu(row).values[index_of(quantity)] = row.value;
}
/// `first` if the series has that label, otherwise `second` unless the value is known.
void prefer(Draft& draft, const Row& row, Quantity quantity, std::string_view label, std::string_view first,
            std::string_view second) {
  if (row[label] == first) return set(draft, row, quantity);
  const bool is_known = !std::isnan(draft.gpu(row).values[index_of(quantity)]);
  if (row[label] == second && !is_known) set(draft, row, quantity);
}

void take_up(Draft& draft, const Row& row) {
  GpuPicture& gpu = draft.gpu(row);
  gpu.up = row.value != 0;
  gpu.index = row.order;
  gpu.gpu = row.text("gpu");
  gpu.vendor = row.text("vendor");
  gpu.model = row.text("model");
  if (gpu.name.empty()) gpu.name = row.text("name");
}
void take_info(Draft& draft, const Row& row) {
  GpuPicture& gpu = draft.gpu(row);
  gpu.pci_address = row.text("pci_address");
  if (gpu.name.empty()) gpu.name = row.text("name");
}
void take_margin(Draft& draft, const Row& row) {
  double& margin = draft.gpu(row).values[index_of(Quantity::margin)];
  margin = std::isnan(margin) ? row.value : std::min(margin, row.value);
}
void take_throttled(Draft& draft, const Row& row) {
  static const std::unordered_map<std::string_view, Quantity> kCauses = {
      {"power", Quantity::throttled_power},
      {"thermal", Quantity::throttled_thermal},
      {"hardware", Quantity::throttled_hardware},
      {"current", Quantity::throttled_hardware},
      {"reliability", Quantity::throttled_hardware}};
  const auto cause = kCauses.find(row["cause"]);
  if (cause == kCauses.end()) return;
  GpuPicture& gpu = draft.gpu(row);
  double& value = gpu.values[index_of(cause->second)];
  value = std::isnan(value) ? row.value : std::max(value, row.value);
  if (row.value != 0) gpu.throttled.push_back(row.text("cause"));
}
void take_share(Draft& draft, const Row& row) {
  if (row.value > 0) draft.gpu(row).holders.push_back({row.text("kind"), row.text("workload"), row.value});
}
void take_event(Draft& draft, const Row& row, std::string_view kind, std::string_view label) {
  if (row.value > 0) draft.gpu(row).event_counts[std::string(kind).append(row[label])] = row.value;
}
void take_run_gpu(Draft& draft, const Row& row) {
  draft.gpu(row).runs.push_back({row.text("run"), row.text("user")});
  draft.run(row).gpus.push_back(row.text("gpu"));
}
void take_stop(Draft& draft, const Row& row) { draft.run(row).status = row.text("status"); }

void add(double& sum, double value) { sum = std::isnan(sum) ? value : sum + value; }

/// Moves a series of one family into the draft.
struct Taker {
  std::string_view family;
  void (*take)(Draft&, const Row&);
};

constexpr Taker kOfGpus[] = {
    {"gpu_up", take_up},
    {"gpu_info", take_info},
    {"gpu_suspended", [](Draft& d, const Row& row) { d.gpu(row).is_suspended = row.value != 0; }},
    {"gpu_health",
     [](Draft& d, const Row& row) {
       if (row.value != 0) d.gpu(row).state = row.text("state");
     }},
    {"gpu_health_reason",
     [](Draft& d, const Row& row) {
       d.gpu(row).reasons.push_back({row.text("reason"), row.text("severity"), row.text("action")});
     }},
    {"gpu_utilization_ratio", [](Draft& d, const Row& row) { set(d, row, Quantity::utilization); }},
    {"gpu_compute_active_ratio", [](Draft& d, const Row& row) { set(d, row, Quantity::compute_active); }},
    {"gpu_power_watts", [](Draft& d, const Row& row) { set(d, row, Quantity::power); }},
    {"gpu_power_limit_watts",
     [](Draft& d, const Row& row) { prefer(d, row, Quantity::power_limit, "limit", "enforced", "default"); }},
    {"gpu_memory_used_bytes",
     [](Draft& d, const Row& row) { prefer(d, row, Quantity::memory_used, "memory", "vram", "unified"); }},
    {"gpu_memory_size_bytes",
     [](Draft& d, const Row& row) {
       double& size = d.gpu(row).memory_size_bytes;
       if (row["memory"] == "vram" || (row["memory"] == "unified" && std::isnan(size))) size = row.value;
     }},
    {"gpu_temperature_celsius",
     [](Draft& d, const Row& row) { prefer(d, row, Quantity::temperature, "sensor", "core", "hotspot"); }},
    {"gpu_temperature_margin_celsius", take_margin},
    {"gpu_clock_hertz",
     [](Draft& d, const Row& row) { prefer(d, row, Quantity::clock, "clock", "graphics", "sm"); }},
    {"gpu_throttled", take_throttled},
    {"gpu_xid_errors_total", [](Draft& d, const Row& row) { take_event(d, row, "xid_", "xid"); }},
    {"gpu_events_total", [](Draft& d, const Row& row) { take_event(d, row, "", "event"); }},
};
constexpr Taker kOfWorkloads[] = {
    {"gpu_workload_share_ratio", take_share},
    {"gpu_workload_info",
     [](Draft& d, const Row& row) {
       d.users[{row.text("kind"), row.text("workload")}] = row.text("user");
     }},
};
constexpr Taker kOfRuns[] = {
    {"ml_run_gpu_info", take_run_gpu},
    {"ml_run_stop_timestamp_seconds", take_stop},
    {"ml_run_start_timestamp_seconds",
     [](Draft& d, const Row& row) { d.run(row).start_timestamp_seconds = row.value; }},
    {"ml_run_time_seconds", [](Draft& d, const Row& row) { d.run(row).run_time_seconds = row.value; }},
    {"ml_last_update_timestamp_seconds",
     [](Draft& d, const Row& row) { d.run(row).last_update_timestamp_seconds = row.value; }},
    {"ml_step", [](Draft& d, const Row& row) { d.run(row).step = row.value; }},
    {"ml_steps_total", [](Draft& d, const Row& row) { add(d.run(row).steps, row.value); }},
    {"ml_samples_total", [](Draft& d, const Row& row) { add(d.run(row).samples, row.value); }},
    {"ml_tokens_total", [](Draft& d, const Row& row) { add(d.run(row).tokens, row.value); }},
    {"ml_loss", [](Draft& d, const Row& row) { d.run(row).loss[row.text("split")] = row.value; }},
    {"ml_phase_seconds_total",
     [](Draft& d, const Row& row) { d.run(row).phase_seconds[row.text("phase")] = row.value; }},
};
constexpr Taker kOfTheDaemon[] = {
    {"gpumeter_simulated", [](Draft& d, const Row& row) { d.is_simulated = row.value != 0; }},
};

using Take = decltype(Taker::take);
const std::unordered_map<std::string_view, Take>& takers() {
  static const auto kTakers = [] {
    std::unordered_map<std::string_view, Take> all;
    for (const std::span<const Taker> table :
         {std::span<const Taker>(kOfGpus), std::span<const Taker>(kOfWorkloads),
          std::span<const Taker>(kOfRuns), std::span<const Taker>(kOfTheDaemon)}) {
      for (const Taker& taker : table) all.emplace(taker.family, taker.take);
    }
    return all;
  }();
  return kTakers;
}

struct Copy {
  Take take;
  Labels labels;
  double value;
};

std::vector<Copy> copied(const Store& store) {
  std::vector<Copy> copies;
  store.walk([&](const Family& family) {
    const auto taker = takers().find(family.descriptor().name);
    if (taker == takers().end()) return;
    family.for_each([&](const Series& it) { copies.push_back({taker->second, it.labels(), it.value()}); });
  });
  return copies;
}

void finish(GpuPicture& gpu, const Draft& draft) {
  std::ranges::stable_sort(gpu.holders, std::greater(), &GpuHolder::share);
  for (GpuHolder& holder : gpu.holders) {
    const auto user = draft.users.find({holder.kind, holder.workload});
    if (user != draft.users.end()) holder.user = user->second;
  }
}

}  // namespace

Picture observe(const Store& store) {
  Draft draft;
  for (const Copy& copy : copied(store)) copy.take(draft, Row(copy.labels, copy.value));
  Picture picture;
  picture.is_simulated = draft.is_simulated;
  for (auto& [uuid, gpu] : draft.gpus) {
    if (!gpu.up) continue;  // still starting, or forgotten
    finish(gpu, draft);
    picture.gpus.push_back(std::move(gpu));
  }
  for (auto& [key, run] : draft.runs) picture.runs.push_back(std::move(run));
  std::ranges::stable_sort(picture.gpus, {}, &GpuPicture::index);
  return picture;
}

}  // namespace gpumeter
