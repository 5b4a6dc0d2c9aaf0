#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "exporter/health/conditions.hpp"
#include "exporter/health/readings.hpp"
#include "exporter/health/report.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::health {

/// The state of a device with these findings: failed, degraded or ok.
State state_of(const std::vector<Finding>& findings);

/// The recent past of one reading, in twelve slots of a twelfth of the window each. A value leaves up to a
/// twelfth of the window early.
class Window {
 public:
  /// Adds the value of `now`, or nothing if it is absent. Returns the mean or the highest value, or the
  /// growth of a counter, in the window until now; absent if the window is empty.
  double add(Over over, Nanoseconds length, double value, Nanoseconds now) noexcept;
  /// The same as of the last add().
  double result(Over over) const noexcept;

 private:
  static constexpr std::size_t kSlots = 12;
  struct Slot {
    float amount = 0;  ///< sum, highest or growth
    std::uint32_t values = 0;
  };

  void advance(std::int64_t to) noexcept;
  double growth(double value) noexcept;

  std::array<Slot, kSlots> slots_{};
  std::int64_t current_ = 0;  ///< number of the slot that holds the present
  double last_ = kAbsent;     ///< of a counter
};

/// Growth of a counter that is still news.
struct OngoingEvent {
  double count;
  Nanoseconds at{};  ///< of the last one (CLOCK_MONOTONIC)
};

/// The last growth of a counter.
class LastEvent {
 public:
  explicit LastEvent(bool from_zero) noexcept : last_(from_zero ? 0 : kAbsent) {}

  /// Returns the growth since the first of these events, or 0 if `keep` has passed since the last one; absent
  /// if the counter never had a value.
  double add(Nanoseconds keep, double value, Nanoseconds now) noexcept;

  /// The events are no news any more.
  void forget() noexcept { at_.reset(); }

  std::optional<OngoingEvent> ongoing() const noexcept {
    return at_ ? std::optional(OngoingEvent{last_ - before_, *at_}) : std::nullopt;
  }
  /// An earlier process saw this growth. Before the first add().
  void resume(const OngoingEvent& earlier) noexcept {
    before_ = -earlier.count;
    at_ = earlier.at;
  }

 private:
  double last_;
  double before_ = 0;  ///< the count before the first of these events
  std::optional<Nanoseconds> at_;
};

/// A term with the places of its numbers.
struct Place {
  const Term* term;
  std::size_t column;             ///< of its reading
  std::optional<std::size_t> of;  ///< column of the reading that limits it
  std::size_t past;               ///< among the windows or the events of a device

  /// True if nobody but the daemon knows of the events; the driver's counters outlive the daemon.
  bool counts_events_of_daemon() const noexcept;
  /// True if the highest value since the driver was opened counts, which only the daemon knows.
  bool keeps_highest() const noexcept;
  /// The series, for the state file.
  std::string series() const;
  bool compares_with_usual() const noexcept { return term->compare == Compare::below_usual; }
};

/// A condition of the table, ready to be judged.
struct Rule {
  const Condition* condition;
  std::vector<Place> places;
};

/// What is kept of one device.
struct Past {
  std::vector<Window> windows;
  std::vector<LastEvent> events;
  std::vector<std::optional<Nanoseconds>> since;  ///< by rule: since when all terms hold
  State state = State::unknown;
  std::optional<Nanoseconds> in_state_since;

  /// The driver is closed for a repair: the events are no news any more, and nothing holds.
  void forget() noexcept;
};

/// The conditions of devices with the places of their numbers in `readings`. Immutable.
class Rulebook {
 public:
  explicit Rulebook(const Readings& readings);

  const std::vector<Rule>& rules() const noexcept { return rules_; }
  /// For a device that was never seen.
  Past blank() const;

 private:
  Place place_of(const Term& term, const Readings& readings);

  std::vector<Rule> rules_;
  std::size_t windows_ = 0;
  std::vector<bool> events_;  ///< whether each one counts from zero
};

/// How often each value of a reading occurs among like devices, for the terms that compare devices.
class Peers {
 public:
  static bool compares(const Term& term) noexcept {
    return term.compare == Compare::differs_in_model || term.compare == Compare::differs_in_vendor ||
           term.compare == Compare::below_usual;
  }

  /// Counts the values of all devices.
  void count(const Rulebook& rulebook, const Readings& readings);

  /// True if no more than half of the like devices have this value, which is one that was counted. If no
  /// value has a majority, all devices differ.
  bool differs(const Place& place, const DeviceFacts& device, double value) const;

  /// The highest value that more than half of the like devices have or exceed; one of them is the device.
  double usual(const Place& place, const DeviceFacts& device) const;

 private:
  using Group = std::pair<std::size_t, std::string>;  ///< column, kind of device
  static Group group_of(const Place& place, const DeviceFacts& device);

  std::map<Group, std::map<double, std::size_t>> counts_;
};

/// Events of the devices that are still news, by uuid and by the series that counts them. For a gauge, such
/// as the number of links that are up, the count is the highest value so far.
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
