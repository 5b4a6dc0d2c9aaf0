#include "exporter/health/judge.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "collectors/api/catalog.hpp"

namespace gpumeter::health {

namespace {

std::string number_text(double value) {
  std::array<char, 32> text{};
  const double rounded = std::round(value * 10) / 10;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), rounded).ptr};
}

void replace(std::string& text, std::string_view what, const std::string& with) {
  if (const std::size_t at = text.find(what); at != std::string::npos) text.replace(at, what.size(), with);
}

/// The finding of a condition that holds: its text with the value and the reading that limits it.
Finding finding_of(const Condition& condition, double value, double of, Nanoseconds since) {
  Finding finding{std::string(condition.reason),
                  condition.severity,
                  condition.action,
                  std::string(condition.text),
                  value,
                  since,
                  std::string(condition.alert),
                  runbook_of(condition)};
  replace(finding.text, "{value}", number_text(value));
  replace(finding.text, "{percent}", number_text(100 * value) + " %");
  replace(finding.text, "{of}", number_text(of));
  return finding;
}

}  // namespace

State state_of(const std::vector<Finding>& findings) {
  State worst = State::ok;
  for (const Finding& finding : findings) {
    worst = std::max(worst, finding.severity == Severity::failed ? State::failed : State::degraded);
  }
  return worst;
}

double Window::add(Over over, Nanoseconds length, double value, Nanoseconds now) noexcept {
  advance(now.count() / std::max<std::int64_t>(1, length.count() / static_cast<std::int64_t>(kSlots)));
  Slot& slot = slots_[static_cast<std::size_t>(current_) % kSlots];
  if (!std::isnan(value)) {
    const double amount = over == Over::rise ? growth(value) : value;
    const double before = slot.amount;
    slot.amount = static_cast<float>(over == Over::highest && slot.values > 0 ? std::max(before, amount)
                                     : over == Over::highest                  ? amount
                                                                              : before + amount);
    ++slot.values;
  }
  return result(over);
}

void Window::advance(std::int64_t to) noexcept {
  constexpr auto kAll = static_cast<std::int64_t>(kSlots);
  const std::int64_t fresh = std::min(to - current_, kAll);
  for (std::int64_t i = 0; i < fresh; ++i) slots_[static_cast<std::size_t>(to - i) % kSlots] = {};
  current_ = to;
}

// A counter that starts again counts from 0.
double Window::growth(double value) noexcept {
  const double last = std::exchange(last_, value);
  if (std::isnan(last)) return 0;
  return value >= last ? value - last : value;
}

double Window::result(Over over) const noexcept {
  double sum = 0;
  double highest = -std::numeric_limits<double>::infinity();
  double values = 0;
  for (const Slot& slot : slots_) {
    if (slot.values == 0) continue;
    sum += slot.amount;
    highest = std::max(highest, static_cast<double>(slot.amount));
    values += slot.values;
  }
  if (values == 0) return kAbsent;
  if (over == Over::highest) return highest;
  return over == Over::mean ? sum / values : sum;
}

double LastEvent::add(Nanoseconds keep, double value, Nanoseconds now) noexcept {
  if (!std::isnan(value)) {
    const double last = std::exchange(last_, value);
    if (std::isnan(last) && at_) before_ += value;  // of an earlier process, which has counted this value too
    if (value < last) before_ = 0;                  // it starts again: only what it counts now is news
    if (value > last && !at_) before_ = last;
    if (value > last || (value < last && value > 0)) at_ = now;
  }
  if (std::isnan(last_)) return kAbsent;
  if (at_ && now - *at_ >= keep) at_.reset();
  return at_ ? last_ - before_ : 0;
}

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

Peers::Group Peers::group_of(const Place& place, const DeviceFacts& device) {
  if (place.term->compare == Compare::differs_in_vendor) return {place.column, device.vendor};
  return {place.column, device.vendor + '\n' + device.model};
}

void Peers::count(const Rulebook& rulebook, const Readings& readings) {
  counts_.clear();
  for (const Rule& rule : rulebook.rules()) {
    for (const Place& place : rule.places) {
      if (!compares(*place.term)) continue;
      for (std::size_t device = 0; device < readings.devices().size(); ++device) {
        const double value = readings.value(device, place.column);
        if (!std::isnan(value)) ++counts_[group_of(place, readings.devices()[device])][value];
      }
    }
  }
}

double Peers::usual(const Place& place, const DeviceFacts& device) const {
  const auto& counts = counts_.at(group_of(place, device));
  std::size_t all = 0;
  for (const auto& [each, count] : counts) all += count;
  std::size_t as_high = 0;
  auto each = counts.rbegin();
  while (2 * (as_high += each->second) <= all) ++each;
  return each->first;
}

bool Peers::differs(const Place& place, const DeviceFacts& device, double value) const {
  const auto& counts = counts_.at(group_of(place, device));
  std::size_t all = 0;
  for (const auto& [each, count] : counts) all += count;
  return 2 * counts.at(value) <= all;
}

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
