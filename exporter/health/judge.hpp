#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "exporter/health/peers.hpp"
#include "exporter/health/readings.hpp"
#include "exporter/health/report.hpp"
#include "exporter/health/rulebook.hpp"
#include "exporter/health/window.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::health {

/// Events of the devices that are still news, by uuid and by the series that counts them. For a gauge, such
/// as the number of links that are up, the count is the highest value so far.
using Events = std::map<std::string, std::map<std::string, OngoingEvent>>;

/// Judges the devices of a store by the table of conditions. Keeps what the table needs of the past: hold
/// times, windows, the last events. One failed read of a device that is up changes nothing (last_values.hpp).
/// One thread.
class Judge {
 public:
  enum class History : std::uint8_t {
    kept,  ///< judge() is called once a second
    none,  ///< one call: hold times are skipped, windows hold the last value, unseen growth is not judged
  };

  explicit Judge(History history = History::kept);

  /// Returns the judgement as of `now` (CLOCK_MONOTONIC). The store's mutex is held to copy numbers only.
  Report judge(const Store& store, Nanoseconds now);

  /// Events of an earlier process, for devices that were not judged yet.
  void resume(Events earlier) { earlier_ = std::move(earlier); }
  /// The events that only the daemon has counted, if they are news, and the highest values that it has seen
  /// since the driver was opened; those of earlier processes for devices that were not judged yet.
  Events events() const;

 private:
  Past past_of(const std::string& uuid) const;
  DeviceHealth judge_device(std::size_t device);
  void judge_rule(const Rule& rule, std::size_t device, Past& past, std::vector<Finding>& to);
  double look(const Place& place, std::size_t device, Past& past) const;
  double limit(const Place& place, std::size_t device, double value, Past& past) const;
  bool passes(const Place& place, std::size_t device, double value, double limit) const;
  bool is_held(const Condition& condition, std::optional<Nanoseconds>& since, bool holds) const;
  bool is_known(std::size_t device) const;
  std::vector<Finding> judge_machine();
  double count_read(const std::string& vendor) const;

  const bool keeps_;
  Readings readings_;
  const Rulebook rulebook_;
  const std::size_t up_;         ///< column of gpu_up
  const std::size_t info_;       ///< column of gpu_info
  const std::size_t suspended_;  ///< column of gpu_suspended
  Peers peers_;
  Nanoseconds now_{};
  Events earlier_;
  std::unordered_map<std::string, Past> pasts_;                      ///< by uuid
  std::map<std::string, std::optional<Nanoseconds>> missing_since_;  ///< by vendor
};

}  // namespace gpumeter::health
