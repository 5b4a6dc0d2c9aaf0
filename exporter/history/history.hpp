#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "exporter/history/events.hpp"
#include "exporter/history/half.hpp"
#include "exporter/history/picture.hpp"
#include "exporter/history/track.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// The last hours of every GPU and run, in memory. A GPU takes 12 KiB at first, 4 KiB more for each
/// quarter of an hour, and 107 KiB after 6 hours; a run takes 5 KiB at first and 46 KiB at the most. Limits:
/// 1024 GPUs and 64 runs. A new GPU then replaces the one that was updated least recently. A new run replaces
/// one that has ended; if none has, it has no history. A lost GPU keeps its history; a run loses it when it
/// leaves the page.
class History {
 public:
  static constexpr std::size_t kMostGpus = 1024;
  static constexpr std::size_t kMostRuns = 64;
  using GpuTrack = Track<Half>;
  using RunTrack = Track<float>;
  static_assert(GpuTrack::most_bytes(kGpuColumnCount) <= std::size_t{110} * 1024);
  static_assert(RunTrack::most_bytes(kRunColumnCount) <= std::size_t{46} * 1024);

  /// A part of the history of one GPU or run.
  struct Answer {
    std::string gpu, uuid;  ///< of a GPU
    GpuRun run = {};        ///< of a run
    Stretch stretch = {};
    double epoch_seconds = 0;  ///< Unix time of second 0 of the stretch and of the events
    std::vector<GpuEvent> events = {};
  };

  /// Both must outlive the history.
  History(const Store& store, const Clock& clock) : store_(store), clock_(clock) {}

  /// Records the store's values of this second. Called once a second by one thread.
  void sample() GPUMETER_EXCLUDES(mutex_);

  /// The last picture; never null. Any thread, as all that follow.
  std::shared_ptr<const Picture> picture() const GPUMETER_EXCLUDES(mutex_);
  /// nullopt if there is no history of this GPU. `uuid` or, if it is empty, `gpu` selects it.
  std::optional<Answer> of_gpu(std::string_view gpu, std::string_view uuid, Range range) const
      GPUMETER_EXCLUDES(mutex_);
  std::optional<Answer> of_run(const GpuRun& run, Range range) const GPUMETER_EXCLUDES(mutex_);
  /// The utilisation of each GPU of the last picture in the last 300 seconds, the oldest first. NaN: no
  /// value.
  std::vector<std::vector<float>> sparklines() const GPUMETER_EXCLUDES(mutex_);

 private:
  struct Gpu {
    std::string gpu;
    GpuTrack track{kGpuColumns};
    GpuEvents events = {};
  };
  struct Run {
    RunTrack track{kRunColumns};
    std::deque<std::pair<std::int64_t, double>> steps = {};  // of the last 30 s
    std::optional<std::int64_t> ended = {};                  // since when the run is over
    double steps_per_second(std::int64_t second, double total);
  };

  void add(const GpuPicture& gpu) GPUMETER_REQUIRES(mutex_);
  void add(RunPicture& run) GPUMETER_REQUIRES(mutex_);
  Run* room_for(const RunPicture& run) GPUMETER_REQUIRES(mutex_);
  template <class Any>
  bool is_older(const Any& track, std::int64_t seconds) const GPUMETER_REQUIRES(mutex_) {
    return second_ - track.last().value_or(0) > seconds;
  }
  double epoch_seconds() const noexcept { return to_seconds(clock_.realtime() - clock_.boottime()); }

  const Store& store_;
  const Clock& clock_;
  mutable Mutex mutex_;                                  // never held together with the store's
  std::int64_t second_ GPUMETER_GUARDED_BY(mutex_) = 0;  // of the last sample, by CLOCK_BOOTTIME
  std::shared_ptr<const Picture> picture_ GPUMETER_GUARDED_BY(mutex_) = std::make_shared<const Picture>();
  std::map<std::string, Gpu, std::less<>> gpus_ GPUMETER_GUARDED_BY(mutex_);  // by uuid
  std::map<GpuRun, Run> runs_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
