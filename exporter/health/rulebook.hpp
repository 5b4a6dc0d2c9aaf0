#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "exporter/health/readings.hpp"
#include "exporter/health/report.hpp"
#include "exporter/health/window.hpp"

namespace gpumeter::health {

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

}  // namespace gpumeter::health
