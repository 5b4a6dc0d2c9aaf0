#include "exporter/health/judge.hpp"

#include <algorithm>
#include <cmath>

#include "collectors/api/catalog.hpp"

namespace gpumeter::health {
namespace {

/// The label of gpumeter_devices_expected that stands for all vendors together.
constexpr std::string_view kAnyVendor = "any";

bool is_same(const Finding& one, const Finding& other) {
  return one.reason == other.reason && one.severity == other.severity && one.action == other.action;
}

}  // namespace

Judge::Judge(History history)
    : keeps_(history == History::kept),
      readings_(all_conditions()),
      rulebook_(readings_),
      up_(readings_.column({&catalog::up})),
      info_(readings_.column({&catalog::info})),
      suspended_(readings_.column({&catalog::suspended, {}, Reduce::highest})) {}

Report Judge::judge(const Store& store, Nanoseconds now) {
  now_ = now;
  readings_.copy_from(store, now);
  peers_.count(rulebook_, readings_);
  Report report;
  report.at = now;
  for (std::size_t device = 0; device < readings_.devices().size(); ++device) {
    if (is_known(device)) report.devices.push_back(judge_device(device));
  }
  std::ranges::stable_sort(report.devices, {}, [](const DeviceHealth& each) { return each.labels.order(); });
  report.machine = judge_machine();
  const bool is_empty = report.devices.empty() && report.machine.empty();
  report.state = is_empty ? State::unknown : state_of(report.machine);
  for (const DeviceHealth& device : report.devices) report.state = std::max(report.state, device.state);
  return report;
}

// A device that was forgotten has no series any more.
bool Judge::is_known(std::size_t device) const {
  return !std::isnan(readings_.value(device, up_)) || !std::isnan(readings_.value(device, info_));
}

DeviceHealth Judge::judge_device(std::size_t device) {
  const DeviceFacts& facts = readings_.devices()[device];
  const auto [known, is_new] = pasts_.try_emplace(facts.uuid);
  Past& past = known->second;
  if (is_new) past = past_of(facts.uuid);
  DeviceHealth health{facts.labels, facts.gpu, facts.uuid, facts.vendor, facts.model, facts.pci_address};
  for (const Rule& rule : rulebook_.rules()) judge_rule(rule, device, past, health.findings);
  const bool is_released = readings_.released().contains(facts.collector);
  if (is_released) past.forget();
  if (is_released || std::isnan(readings_.value(device, up_))) {
    health.findings.clear();
  } else {
    std::ranges::stable_sort(health.findings, std::ranges::greater(), &Finding::severity);
    health.state = state_of(health.findings);
  }
  if (!past.in_state_since || past.state != health.state) past.in_state_since = now_;
  past.state = health.state;
  health.since = *past.in_state_since;
  return health;
}

Past Judge::past_of(const std::string& uuid) const {
  Past past = rulebook_.blank();
  const auto earlier = earlier_.find(uuid);
  if (earlier == earlier_.end()) return past;
  for (const Rule& rule : rulebook_.rules()) {
    for (const Place& place : rule.places) {
      if (!place.counts_events_of_daemon() && !place.keeps_highest()) continue;
      const auto event = earlier->second.find(place.series());
      if (event == earlier->second.end()) continue;
      if (place.counts_events_of_daemon()) {
        past.events[place.past].resume(event->second);
      } else {
        past.windows[place.past].add(Over::highest, place.term->window, event->second.count, now_);
      }
    }
  }
  return past;
}

Events Judge::events() const {
  Events events = earlier_;
  std::erase_if(events, [this](const auto& device) { return pasts_.contains(device.first); });
  for (const auto& [uuid, past] : pasts_) {
    for (const Rule& rule : rulebook_.rules()) {
      for (const Place& place : rule.places) {
        std::optional<OngoingEvent> event;
        if (place.counts_events_of_daemon()) event = past.events[place.past].ongoing();
        if (place.keeps_highest()) event = OngoingEvent{past.windows[place.past].result(Over::highest), now_};
        if (event && event->count > 0) events[uuid][place.series()] = *event;
      }
    }
  }
  return events;
}

// Every term is looked at in each turn, because a window must not miss a value.
void Judge::judge_rule(const Rule& rule, std::size_t device, Past& past, std::vector<Finding>& to) {
  bool holds = true;
  double first = kAbsent;
  double of = 0;
  for (const Place& place : rule.places) {
    const double value = look(place, device, past);
    const double most = limit(place, device, value, past);
    if (&place == rule.places.data()) {
      first = value;
      of = place.of ? readings_.value(device, *place.of) : most;
    }
    holds = passes(place, device, value, most) && holds;
  }
  auto& since = past.since[static_cast<std::size_t>(&rule - rulebook_.rules().data())];
  if (!is_held(*rule.condition, since, holds)) return;
  const Place& place = rule.places.front();
  const double value = place.term->reading.text.empty() ? first : 1;
  const Finding finding = finding_of(*rule.condition, value, of, *since);
  const auto is_it = [&](const Finding& other) { return is_same(finding, other); };
  if (std::ranges::none_of(to, is_it)) to.push_back(finding);
}

double Judge::look(const Place& place, std::size_t device, Past& past) const {
  const Term& term = *place.term;
  double value = readings_.value(device, place.column);
  if (std::isnan(value)) value = term.reading.if_absent;
  if (term.over == Over::now) return value;
  if (term.over == Over::event) return past.events[place.past].add(term.window, value, now_);
  if (term.over == Over::rise && !keeps_) return kAbsent;
  return past.windows[place.past].add(term.over, term.window, value, now_);
}

double Judge::limit(const Place& place, std::size_t device, double value, Past& past) const {
  const Term& term = *place.term;
  if (!place.compares_with_usual())
    return term.threshold * (place.of ? readings_.value(device, *place.of) : 1);
  const double own = past.windows[place.past].add(Over::highest, term.window, value, now_);
  return std::isnan(value) ? own : std::max(own, peers_.usual(place, readings_.devices()[device]));
}

bool Judge::passes(const Place& place, std::size_t device, double value, double limit) const {
  const Term& term = *place.term;
  if (std::isnan(value)) return false;
  const bool is_limited = !Peers::compares(term) || place.compares_with_usual();
  if (!is_limited) return peers_.differs(place, readings_.devices()[device], value);
  return term.compare == Compare::above ? value > limit : value < limit;  // false if the limit is absent
}

bool Judge::is_held(const Condition& condition, std::optional<Nanoseconds>& since, bool holds) const {
  if (!holds) {
    since.reset();
    return false;
  }
  if (!since) since = now_;
  return !keeps_ || now_ - *since >= condition.hold;
}

// While drivers are closed on request, their devices are not read and not missing.
std::vector<Finding> Judge::judge_machine() {
  std::vector<Finding> findings;
  for (const auto& [vendor, expected] : readings_.expected()) {
    const double read = count_read(vendor);
    const bool is_missing = read < expected && readings_.released().empty();
    std::optional<Nanoseconds>& since = missing_since_[vendor];
    if (!is_held(devices_missing(), since, is_missing)) continue;
    Finding finding = finding_of(devices_missing(), read, expected, *since);
    if (vendor != kAnyVendor) finding.text += " (" + vendor + ")";
    findings.push_back(std::move(finding));
  }
  return findings;
}

// A sleeping GPU is there.
double Judge::count_read(const std::string& vendor) const {
  double read = 0;
  for (std::size_t device = 0; device < readings_.devices().size(); ++device) {
    const bool counts = vendor == kAnyVendor || readings_.devices()[device].vendor == vendor;
    const bool is_there = readings_.value(device, up_) > 0 || readings_.value(device, suspended_) > 0;
    if (counts && is_there) ++read;
  }
  return read;
}

}  // namespace gpumeter::health
