#include "exporter/health/rulebook.hpp"

#include <algorithm>

#include "collectors/api/catalog.hpp"

namespace gpumeter::health {

bool Place::counts_events_of_daemon() const noexcept {
  const MetricDescriptor* const family = term->reading.family;
  return term->over == Over::event && (family == &catalog::xid_errors || family == &catalog::events);
}

bool Place::keeps_highest() const noexcept {
  return term->window == kUntilRelease && (term->over == Over::highest || compares_with_usual());
}

std::string Place::series() const {
  std::string text(term->reading.family->name);
  for (const LabelSet::Pair& pair : term->reading.labels.pairs) {
    if (!pair.name.empty()) text.append(",").append(pair.name).append("=").append(pair.value);
  }
  return text;
}

void Past::forget() noexcept {
  for (LastEvent& event : events) event.forget();
  std::ranges::fill(windows, Window());
  std::ranges::fill(since, std::nullopt);
}

Rulebook::Rulebook(const Readings& readings) {
  for (const Condition& condition : all_conditions()) {
    if (condition.reason == devices_missing().reason) continue;
    Rule& rule = rules_.emplace_back(Rule{&condition, {}});
    for (const Term& term : condition.terms) {
      if (term.reading.family != nullptr) rule.places.push_back(place_of(term, readings));
    }
  }
}

Place Rulebook::place_of(const Term& term, const Readings& readings) {
  Place place{&term, readings.column(term.reading), std::nullopt, 0};
  if (term.of.family != nullptr) place.of = readings.column(term.of);
  if (term.over == Over::event) {
    place.past = events_.size();
    events_.push_back(term.from_zero);
  } else if (term.over != Over::now || place.compares_with_usual()) {
    place.past = windows_++;
  }
  return place;
}

Past Rulebook::blank() const {
  Past past;
  past.windows.resize(windows_);
  past.events.reserve(events_.size());
  for (const bool from_zero : events_) past.events.emplace_back(from_zero);
  past.since.resize(rules_.size());
  return past;
}

}  // namespace gpumeter::health
