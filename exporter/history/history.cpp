#include "exporter/history/history.hpp"

#include <algorithm>
#include <limits>

#include "exporter/history/observe.hpp"

namespace gpumeter {
namespace {

constexpr std::int64_t kRateSeconds = 30;
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
  if (!is_over) run.steps_per_second = kept->steps_per_second(second_, run.steps);
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

double History::Run::steps_per_second(std::int64_t second, double total) {
  if (std::isnan(total)) return kAbsent;
  if (!steps.empty() && total < steps.back().second) steps.clear();  // the run began again
  steps.emplace_back(second, total);
  while (second - steps.front().first > kRateSeconds) steps.pop_front();
  const auto seconds = static_cast<double>(second - steps.front().first);
  return seconds > 0 ? (total - steps.front().second) / seconds : kAbsent;
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
