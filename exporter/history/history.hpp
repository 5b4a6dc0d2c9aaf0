#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "exporter/history/track.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

inline constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

/// A workload on a GPU.
struct GpuHolder {
  std::string kind;
  std::string workload;
  double share = 0;       ///< of the GPU, 0 to 1
  std::string user = {};  ///< empty if unknown
};

/// A run on a GPU, as ml_run_gpu_info names it.
struct GpuRun {
  std::string run;
  std::string user;
  auto operator<=>(const GpuRun&) const = default;
};

/// A finding of the daemon about a GPU: one series of gpu_health_reason.
struct GpuReason {
  std::string reason;
  std::string severity;
  std::string action;
  bool operator==(const GpuReason&) const = default;
};

/// A GPU at one moment. A GPU that is not read has its labels and no values.
struct GpuPicture {
  unsigned index = 0;
  std::string gpu, uuid, vendor, model, name, pci_address;
  std::optional<bool> up = {};
  bool is_suspended = false;
  std::string state = {};  ///< of gpu_health; empty if the page has none
  std::vector<GpuReason> reasons = {};
  std::array<double, kGpuColumnCount> values = {};  ///< kAbsent: no value
  double memory_size_bytes = kAbsent;
  std::vector<std::string> throttled = {};  ///< causes that limit the clocks now
  std::vector<GpuHolder> holders = {};      ///< the largest share first
  std::vector<GpuRun> runs = {};
  /// Counters above 0 whose rise is an event: "xid_79", "bus_lost".
  std::map<std::string, double> event_counts = {};
};

/// A run at one moment.
struct RunPicture {
  std::string run, user;
  std::vector<std::string> gpus = {};  ///< labels `gpu`
  std::string status = {};             ///< how it ended; empty while it runs
  double start_timestamp_seconds = kAbsent;
  double run_time_seconds = kAbsent;
  double last_update_timestamp_seconds = kAbsent;
  double step = kAbsent;
  double steps = kAbsent;  ///< sum of ml_steps_total
  double samples = kAbsent, tokens = kAbsent;
  std::map<std::string, double> loss = {};           ///< by split
  std::map<std::string, double> phase_seconds = {};  ///< by phase
  /// Over the last 30 s; set by the history.
  double steps_per_second = kAbsent, samples_per_second = kAbsent, tokens_per_second = kAbsent;
};

/// What the page shows of the machine, from one walk over the store.
struct Picture {
  std::vector<GpuPicture> gpus = {};  ///< by index
  std::vector<RunPicture> runs = {};  ///< by run and user
  bool is_simulated = false;
};

/// Something that happened to a GPU between two pictures.
struct GpuEvent {
  enum class Kind : std::uint8_t {
    event,          ///< xid_CODE, an event of gpu_events_total, or `lost` and `read_again` for gpu_up
    finding,        ///< a reason of gpu_health_reason holds
    finding_ended,  ///< it does not hold any longer
  };
  std::int64_t second = 0;
  std::string name;
  Kind kind = Kind::event;
};
constexpr std::string_view to_string(GpuEvent::Kind kind) noexcept {
  constexpr std::string_view kNames[] = {"event", "finding", "finding_ended"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// Finds the events of one GPU by comparing its pictures; keeps the last 64. Not for several threads.
class GpuEvents {
 public:
  /// Counters that the first picture already has are no events.
  void add(std::int64_t second, const GpuPicture& gpu);

  const std::deque<GpuEvent>& events() const noexcept { return events_; }

 private:
  void keep(GpuEvent event);

  std::deque<GpuEvent> events_;  // the oldest first
  std::optional<bool> was_up_;   // nullopt: no picture yet
  /// Counters are not removed while their series is absent, such as that of a lost GPU.
  std::map<std::string, double> counts_;
  std::vector<GpuReason> reasons_;
};

/// Reads the picture from the store. Copies the few families that it needs during the walk and works on the
/// copy, so that commits do not wait. Any thread.
Picture observe(const Store& store);

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
  /// The rate of a counter of a run over the last 30 s. An increment has the time of the run's update, not
  /// that of the sample, which is up to a second later: the rate of regular messages is right from the second
  /// sample on.
  class Rate {
   public:
    /// `second`, `updated`: of this sample and of the run's last update, in seconds of one clock.
    double after(double second, double updated, double total);

   private:
    struct Seen {
      double second, updated, total;
    };
    std::deque<Seen> seen_;
  };
  struct Run {
    RunTrack track{kRunColumns};
    Rate steps = {}, samples = {}, tokens = {};
    std::optional<std::int64_t> ended = {};  // since when the run is over
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
