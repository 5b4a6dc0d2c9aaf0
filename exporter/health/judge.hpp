#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/part.hpp"
#include "exporter/health/report.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::health {

/// Growth of a counter that is still news.
struct OngoingEvent {
  double count;
  Nanoseconds at{};                 ///< of the last one (CLOCK_MONOTONIC)
  std::vector<double> growth = {};  ///< in each slot of a window until then; the count is the counter's value
};

/// Events of the devices that are still news, by uuid and by the series that counts them. For a gauge, such
/// as the number of links that are up, the count is the highest value so far. For a link, the uuid is
/// "GPU-0/nvlink/14".
using Events = std::map<std::string, std::map<std::string, OngoingEvent>>;

/// Judges the devices of a store by the table of conditions. Keeps what the table needs of the past: hold
/// times, windows, the last events. One failed read of a device that is up changes nothing.
/// One thread.
class Judge {
 public:
  enum class History : std::uint8_t {
    kept,  ///< judge() is called once a second
    none,  ///< one call: hold times are skipped, windows hold the last value, unseen growth is not judged
  };

  explicit Judge(History history = History::kept);
  ~Judge();

  /// Returns the judgement as of `now` (CLOCK_MONOTONIC). The store's mutex is held to copy numbers only.
  Report judge(const Store& store, Nanoseconds now);

  /// Events of an earlier process, for devices that were not judged yet.
  void resume(Events earlier);
  /// The events that only the daemon has counted, if they are news, the windows of a day, and the highest
  /// values that it has seen since the driver was opened; those of earlier processes for devices that were
  /// not judged yet.
  Events events() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

/// Judges the devices once a second, publishes gpu_health, gpu_health_reason and Machine::health, and logs
/// each reason when it begins and when it ends. Keeps the events that only the daemon has counted, such as
/// XIDs: they are news for as long after a restart of the daemon as without it, until the machine boots,
/// which resets the GPUs.
extern const PartEntry kPart;

}  // namespace gpumeter::health
