#include "exporter/history/history.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <string_view>
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

void add(double& sum, double value) { sum = std::isnan(sum) ? value : sum + value; }

void take_throttled(Draft& draft, const Row& row) {
  constexpr std::pair<std::string_view, Quantity> kCauses[] = {{"power", Quantity::throttled_power},
                                                               {"thermal", Quantity::throttled_thermal},
                                                               {"hardware", Quantity::throttled_hardware},
                                                               {"current", Quantity::throttled_hardware},
                                                               {"reliability", Quantity::throttled_hardware}};
  const auto* const cause =
      std::ranges::find(kCauses, row["cause"], [](const auto& each) { return each.first; });
  if (cause == std::end(kCauses)) return;
  GpuPicture& gpu = draft.gpu(row);
  double& value = gpu.values[index_of(cause->second)];
  value = std::isnan(value) ? row.value : std::max(value, row.value);
  if (row.value != 0) gpu.throttled.push_back(row.text("cause"));
}

void take_event(Draft& draft, const Row& row, std::string_view kind, std::string_view label) {
  if (row.value > 0) draft.gpu(row).event_counts[std::string(kind).append(row[label])] = row.value;
}

/// Moves a series of one family into the draft.
struct Taker {
  std::string_view family;
  void (*take)(Draft&, const Row&);
};

constexpr Taker kTakers[] = {
    {"gpu_up",
     [](Draft& d, const Row& row) {
       GpuPicture& gpu = d.gpu(row);
       gpu.up = row.value != 0;
       gpu.index = row.order;
       gpu.gpu = row.text("gpu");
       gpu.vendor = row.text("vendor");
       gpu.model = row.text("model");
       if (gpu.name.empty()) gpu.name = row.text("name");
     }},
    {"gpu_info",
     [](Draft& d, const Row& row) {
       GpuPicture& gpu = d.gpu(row);
       gpu.pci_address = row.text("pci_address");
       if (gpu.name.empty()) gpu.name = row.text("name");
     }},
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
    {"gpu_temperature_margin_celsius",
     [](Draft& d, const Row& row) {
       double& margin = d.gpu(row).values[index_of(Quantity::margin)];
       margin = std::isnan(margin) ? row.value : std::min(margin, row.value);
     }},
    {"gpu_clock_hertz",
     [](Draft& d, const Row& row) { prefer(d, row, Quantity::clock, "clock", "graphics", "sm"); }},
    {"gpu_throttled", take_throttled},
    {"gpu_xid_errors_total", [](Draft& d, const Row& row) { take_event(d, row, "xid_", "xid"); }},
    {"gpu_events_total", [](Draft& d, const Row& row) { take_event(d, row, "", "event"); }},
    {"gpu_workload_share_ratio",
     [](Draft& d, const Row& row) {
       if (row.value > 0) d.gpu(row).holders.push_back({row.text("kind"), row.text("workload"), row.value});
     }},
    {"gpu_workload_info",
     [](Draft& d, const Row& row) {
       d.users[{row.text("kind"), row.text("workload")}] = row.text("user");
     }},
    {"ml_run_gpu_info",
     [](Draft& d, const Row& row) {
       d.gpu(row).runs.push_back({row.text("run"), row.text("user")});
       d.run(row).gpus.push_back(row.text("gpu"));
     }},
    {"ml_run_stop_timestamp_seconds",
     [](Draft& d, const Row& row) { d.run(row).status = row.text("status"); }},
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
    {"gpumeter_simulated", [](Draft& d, const Row& row) { d.is_simulated = row.value != 0; }},
};

struct Copy {
  decltype(Taker::take) take;
  Labels labels;
  double value;
};

std::vector<Copy> copied(const Store& store) {
  std::vector<Copy> copies;
  store.walk([&](const Family& family) {
    const auto* const taker = std::ranges::find(kTakers, family.descriptor().name, &Taker::family);
    if (taker == std::end(kTakers)) return;
    family.for_each([&](const Series& it) { copies.push_back({taker->take, it.labels(), it.value()}); });
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

namespace {

bool has(const std::vector<GpuReason>& reasons, const GpuReason& wanted) {
  return std::ranges::find(reasons, wanted.reason, &GpuReason::reason) != reasons.end();
}

}  // namespace

void GpuEvents::add(std::int64_t second, const GpuPicture& gpu) {
  const bool is_up = gpu.up.value_or(false);
  if (was_up_ && *was_up_ != is_up) keep({second, is_up ? "read_again" : "lost"});
  for (const auto& [name, count] : gpu.event_counts) {
    const auto [known, is_new] = counts_.try_emplace(name, was_up_ ? 0 : count);
    if (count > known->second) keep({second, name});
    known->second = count;
  }
  for (const GpuReason& reason : gpu.reasons) {
    if (!has(reasons_, reason)) keep({second, reason.reason, GpuEvent::Kind::finding});
  }
  for (const GpuReason& reason : reasons_) {
    if (!has(gpu.reasons, reason)) keep({second, reason.reason, GpuEvent::Kind::finding_ended});
  }
  reasons_ = gpu.reasons;
  was_up_ = is_up;
}

void GpuEvents::keep(GpuEvent event) {
  constexpr std::size_t kMost = 64;
  if (events_.size() >= kMost) events_.pop_front();
  events_.push_back(std::move(event));
}

namespace {

constexpr double kRateSeconds = 30;
// A GPU without gpu_up is forgotten when the last of its history has passed; a run when it leaves the page.
constexpr std::int64_t kKeep = slots_of(Range::hours) * step_of(Range::hours);

/// The entry of this key. If there are too many, the one that was updated least recently makes room.
template <class Map, class Key>
typename Map::mapped_type& entry(Map& map, const Key& key, std::size_t most) {
  if (const auto found = map.find(key); found != map.end()) return found->second;
  if (map.size() >= most) {
    map.erase(std::ranges::min_element(map, {}, [](const auto& each) { return each.second.track.last(); }));
  }
  return map[key];
}

double loss_of(const RunPicture& run) {
  const auto train = run.loss.find("train");
  if (train != run.loss.end()) return train->second;
  return run.loss.empty() ? kAbsent : run.loss.begin()->second;
}

}  // namespace

void History::sample() {
  auto picture = std::make_shared<Picture>(observe(store_));
  const MutexLock lock(mutex_);
  second_ = std::max(second_, std::chrono::floor<std::chrono::seconds>(clock_.boottime()).count());
  for (const GpuPicture& gpu : picture->gpus) add(gpu);
  for (RunPicture& run : picture->runs) add(run);
  std::erase_if(
      gpus_, [&](const auto& each) GPUMETER_REQUIRES(mutex_) { return is_older(each.second.track, kKeep); });
  std::erase_if(runs_,
                [&](const auto& each) GPUMETER_REQUIRES(mutex_) { return is_older(each.second.track, 0); });
  picture_ = std::move(picture);
}

void History::add(const GpuPicture& gpu) {
  Gpu& kept = entry(gpus_, gpu.uuid, kMostGpus);
  kept.gpu = gpu.gpu;
  kept.track.add(second_, gpu.values);
  kept.events.add(second_, gpu);
}

void History::add(RunPicture& run) {
  Run* const kept = room_for(run);
  if (kept == nullptr) return;
  const bool is_over = !run.status.empty();
  if (!is_over) {
    const double now = epoch_seconds() + static_cast<double>(second_);
    const double updated = run.last_update_timestamp_seconds;
    run.steps_per_second = kept->steps.after(now, updated, run.steps);
    run.samples_per_second = kept->samples.after(now, updated, run.samples);
    run.tokens_per_second = kept->tokens.after(now, updated, run.tokens);
  }
  const double values[] = {run.steps_per_second, is_over ? kAbsent : loss_of(run)};
  kept->track.add(second_, values);
  if (!is_over || !kept->ended) kept->ended = is_over ? std::optional(second_) : std::nullopt;
}

// All runs on the page are updated each second. If the least recent one made room, they would displace each
// other, and none would have a history.
History::Run* History::room_for(const RunPicture& run) {
  const GpuRun key{run.run, run.user};
  if (const auto found = runs_.find(key); found != runs_.end()) return &found->second;
  if (runs_.size() < kMostRuns) return &runs_[key];
  if (!run.status.empty()) return nullptr;
  // A run that goes on counts as the last to end.
  const auto first = std::ranges::min_element(runs_, {}, [](const auto& each) {
    return each.second.ended.value_or(std::numeric_limits<std::int64_t>::max());
  });
  if (!first->second.ended) return nullptr;
  runs_.erase(first);
  return &runs_[key];
}

double History::Rate::after(double second, double updated, double total) {
  if (std::isnan(total)) return kAbsent;
  if (!seen_.empty() && total < seen_.back().total) seen_.clear();  // the run began again
  seen_.push_back({second, std::isnan(updated) ? second : updated, total});
  while (second - seen_.front().second > kRateSeconds) seen_.pop_front();
  const Seen& first = seen_.front();
  // A run is silent between two steps. One that is silent for longer than it was seen to work stands still.
  const double worked = seen_.back().updated - first.updated;
  const double seconds = std::max(seen_.back().updated, second - worked) - first.updated;
  return seconds > 0 ? (total - first.total) / seconds : kAbsent;
}

std::shared_ptr<const Picture> History::picture() const {
  const MutexLock lock(mutex_);
  return picture_;
}

std::optional<History::Answer> History::of_gpu(std::string_view gpu, std::string_view uuid,
                                               Range range) const {
  const MutexLock lock(mutex_);
  auto found = gpus_.end();
  for (auto each = gpus_.begin(); each != gpus_.end(); ++each) {
    const bool is_wanted = uuid.empty() ? each->second.gpu == gpu : each->first == uuid;
    const bool is_first = found == gpus_.end();
    if (is_wanted && (is_first || each->second.track.last() > found->second.track.last())) found = each;
  }
  if (found == gpus_.end()) return std::nullopt;
  const auto& [its_uuid, kept] = *found;
  const std::deque<GpuEvent>& events = kept.events.events();
  return Answer{kept.gpu,
                its_uuid,
                {},
                kept.track.read(range, second_),
                epoch_seconds(),
                {events.begin(), events.end()}};
}

std::optional<History::Answer> History::of_run(const GpuRun& run, Range range) const {
  const MutexLock lock(mutex_);
  const auto found = runs_.find(run);
  if (found == runs_.end()) return std::nullopt;
  return Answer{{}, {}, run, found->second.track.read(range, second_), epoch_seconds()};
}

std::vector<std::vector<float>> History::sparklines() const {
  const MutexLock lock(mutex_);
  std::vector<std::vector<float>> lines;
  for (const GpuPicture& gpu : picture_->gpus) {
    const auto found = gpus_.find(gpu.uuid);
    lines.push_back(found == gpus_.end()
                        ? std::vector<float>()
                        : found->second.track.minutes(index_of(Quantity::utilization), second_));
  }
  return lines;
}

}  // namespace gpumeter
