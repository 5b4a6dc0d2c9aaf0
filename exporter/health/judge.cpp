#include "exporter/health/judge.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "exporter/health/advisories.hpp"
#include "exporter/health/conditions.hpp"
#include "exporter/health/past.hpp"
#include "exporter/health/readings.hpp"

namespace gpumeter::health {
namespace {

std::string number_text(double value) {
  std::array<char, 32> text{};
  const double rounded = std::round(value * 10) / 10;
  const bool is_tiny = rounded == 0 && value > 0;  // a bit error ratio
  if (is_tiny) {
    constexpr int kDigits = 2;
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, kDigits);
    return {text.data(), end.ptr};
  }
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), rounded).ptr};
}

void replace(std::string& text, std::string_view what, const std::string& with) {
  if (const std::size_t at = text.find(what); at != std::string::npos) text.replace(at, what.size(), with);
}

/// The finding of a condition that holds: its text with the value, the reading that limits it, and the link.
Finding finding_of(const Condition& condition, double value, double of, Nanoseconds since,
                   const std::string& link = {}) {
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
  replace(finding.text, "{link}", link);
  return finding;
}

/// Adds a finding. Of variants of a reason the first says why; of several links each does, the first four.
void add(std::vector<Finding>& to, Finding&& finding, bool is_of_link) {
  constexpr std::ptrdiff_t kMostNamed = 4;
  const auto it = std::ranges::find_if(to, [&](const Finding& other) { return other.is_same(finding); });
  if (it == to.end()) {
    to.push_back(std::move(finding));
  } else if (is_of_link && std::ranges::count(it->text, ';') + 1 < kMostNamed) {
    it->text += "; " + finding.text;
  }
}

/// A term with the places of its numbers.
struct Place {
  const Term* term;
  std::size_t column;             ///< of its reading
  std::optional<std::size_t> of;  ///< column of the reading that limits it
  std::size_t past;               ///< among the windows or the events of a device

  /// True if nobody but the daemon knows of the events; the driver's counters outlive the daemon.
  bool counts_events_of_daemon() const noexcept {
    const MetricDescriptor* const family = term->reading.family;
    return term->over == Over::event && (family == &catalog::xid_errors || family == &catalog::events);
  }
  /// True if the highest value since the driver was opened counts, which only the daemon knows.
  bool keeps_highest() const noexcept {
    return term->window == kUntilRelease && (term->over == Over::highest || compares_with_usual());
  }
  /// True if a restart must not end the window: the driver's counter goes on, and a day is long.
  bool keeps_growth() const noexcept {
    return term->over == Over::rise && term->window >= std::chrono::hours(24);
  }
  bool is_kept() const noexcept { return counts_events_of_daemon() || keeps_highest() || keeps_growth(); }
  bool compares_with_usual() const noexcept { return term->compare == Compare::below_usual; }
  bool compares_devices() const noexcept {
    return term->compare == Compare::differs_in_model || term->compare == Compare::differs_in_vendor ||
           compares_with_usual();
  }
  /// The series, for the state file.
  std::string series() const {
    std::string text(term->reading.family->name);
    for (const LabelSet::Pair& pair : term->reading.labels.pairs) {
      if (!pair.name.empty()) text.append(",").append(pair.name).append("=").append(pair.value);
    }
    return text;
  }
};

/// A condition of the table, ready to be judged.
struct Rule {
  const Condition* condition;
  bool is_of_links;
  std::vector<Place> places;
};

/// An advisory, ready to be judged.
struct AdvisoryRule {
  const Advisory* advisory;
  std::vector<Place> places;
};

/// The readings beside those of the conditions.
std::vector<Reading> other_readings() {
  std::vector<Reading> readings(proofs_of_reset().begin(), proofs_of_reset().end());
  for (const Advisory& advisory : advisories()) {
    for (const Term& term : advisory.terms) readings.push_back(term.reading);
  }
  return readings;
}

/// What is kept of one device, or of one link.
struct Past {
  std::vector<Window> windows;
  std::vector<LastEvent> events;
  std::vector<std::optional<Nanoseconds>> since;  ///< by rule: since when all terms hold
  health::State state = health::State::unknown;
  std::optional<Nanoseconds> in_state_since = {};
  std::optional<Nanoseconds> first_seen = {};
  std::vector<double> proofs = {};  ///< the last values of proofs_of_reset()
  bool is_of_link = false;

  /// The driver is closed for a repair: the events are no news any more, and nothing holds.
  void forget() noexcept {
    for (LastEvent& event : events) event.forget();
    std::ranges::fill(windows, Window());
    std::ranges::fill(since, std::nullopt);
  }
};

/// How often each value of a reading occurs among like devices, for the terms that compare devices.
class Peers {
 public:
  void clear() { counts_.clear(); }
  void add(const Place& place, const DeviceFacts& device, double value) {
    if (!std::isnan(value)) ++counts_[group_of(place, device)][value];
  }

  /// True if no more than half of the like devices have this value, which is one that was counted. If no
  /// value has a majority, all devices differ.
  bool differs(const Place& place, const DeviceFacts& device, double value) const {
    const Counts& counts = counts_.at(group_of(place, device));
    return 2 * counts.at(value) <= sum(counts);
  }

  /// The highest value that more than half of the like devices have or exceed; one of them is the device.
  double usual(const Place& place, const DeviceFacts& device) const {
    const Counts& counts = counts_.at(group_of(place, device));
    const std::size_t all = sum(counts);
    std::size_t as_high = 0;
    auto each = counts.rbegin();
    while (2 * (as_high += each->second) <= all) ++each;
    return each->first;
  }

 private:
  using Group = std::pair<std::size_t, std::string>;  ///< column, kind of device
  using Counts = std::map<double, std::size_t>;

  static Group group_of(const Place& place, const DeviceFacts& device) {
    if (place.term->compare == Compare::differs_in_vendor) return {place.column, device.vendor};
    return {place.column, device.vendor + '\n' + device.model};
  }
  static std::size_t sum(const Counts& counts) {
    std::size_t all = 0;
    for (const auto& [each, count] : counts) all += count;
    return all;
  }

  std::map<Group, Counts> counts_;
};

/// The label of gpumeter_devices_expected that stands for all vendors together.
constexpr std::string_view kAnyVendor = "any";

}  // namespace

State state_of(std::span<const Finding> findings) {
  State worst = State::ok;
  for (const Finding& finding : findings) {
    worst = std::max(worst, finding.severity == Severity::failed ? State::failed : State::degraded);
  }
  return worst;
}

/// All series of a device have come by then; the slow tier reads once a minute.
constexpr Nanoseconds kSettled = std::chrono::minutes(3);

struct Judge::State {
  explicit State(bool keeps) : keeps_(keeps) {
    for (const Condition& condition : all_conditions()) {
      if (condition.reason == devices_missing().reason) continue;
      Rule& rule = rules_.emplace_back(Rule{&condition, is_of_links(condition), {}});
      add_places(condition.terms, rule.is_of_links ? blank_link_ : blank_, rule.places);
    }
    for (const Advisory& advisory : advisories())
      add_places(advisory.terms, blank_, advisory_rules_.emplace_back(AdvisoryRule{&advisory, {}}).places);
    for (const Reading& proof : proofs_of_reset()) proofs_.push_back(readings_.column(proof));
    blank_link_.is_of_link = true;
    for (Past* blank : {&blank_, &blank_link_}) {
      blank->since.resize(rules_.size());
      blank->proofs.assign(proofs_.size(), kAbsent);
    }
  }

  Report judge(const Store& store, Nanoseconds now) {
    now_ = now;
    readings_.copy_from(store, now);
    count_peers();
    Report report;
    report.at = now;
    for (std::size_t device = 0; device < readings_.devices().size(); ++device) {
      if (is_known(device)) report.devices.push_back(judge_device(device));
    }
    std::ranges::stable_sort(report.devices, {},
                             [](const DeviceHealth& each) { return each.labels.order(); });
    report.machine = judge_machine();
    const bool is_empty = report.devices.empty() && report.machine.empty();
    report.state = is_empty ? health::State::unknown : state_of(report.machine);
    for (const DeviceHealth& device : report.devices) report.state = std::max(report.state, device.state);
    return report;
  }

  Events events() const {
    Events events = earlier_;
    std::erase_if(events, [this](const auto& device) { return pasts_.contains(device.first); });
    for (const auto& [uuid, past] : pasts_) {
      for (const Rule& rule : rules_) {
        if (rule.is_of_links != past.is_of_link) continue;
        for (const Place& place : rule.places) {
          std::optional<OngoingEvent> event;
          if (place.counts_events_of_daemon()) event = past.events[place.past].ongoing();
          if (place.keeps_highest())
            event = OngoingEvent{past.windows[place.past].result(Over::highest), now_};
          if (place.keeps_growth()) event = past.windows[place.past].kept(place.term->window);
          if (event && event->count > 0) events[uuid][place.series()] = *event;
        }
      }
    }
    return events;
  }

  void resume(Events earlier) { earlier_ = std::move(earlier); }

 private:
  void add_places(std::span<const Term> terms, Past& blank, std::vector<Place>& to) {
    for (const Term& term : terms) {
      if (term.reading.family != nullptr) to.push_back(place_of(term, blank));
    }
  }

  Place place_of(const Term& term, Past& blank) {
    Place place{&term, readings_.column(term.reading), std::nullopt, 0};
    if (term.of.family != nullptr) place.of = readings_.column(term.of);
    if (term.over == Over::event) {
      place.past = blank.events.size();
      blank.events.emplace_back(term.from_zero);
    } else if (term.over != Over::now || place.compares_with_usual()) {
      place.past = blank.windows.size();
      blank.windows.emplace_back();
    }
    return place;
  }

  void count_peers() {
    peers_.clear();
    for (const Rule& rule : rules_) {
      for (const Place& place : rule.places) {
        if (!place.compares_devices()) continue;
        for (std::size_t device = 0; device < readings_.devices().size(); ++device) {
          if (is_link(device)) continue;
          peers_.add(place, readings_.devices()[device], readings_.value(device, place.column));
        }
      }
    }
  }

  bool is_link(std::size_t device) const { return readings_.devices()[device].owner != device; }

  // A device that was forgotten has no series any more.
  bool is_known(std::size_t device) const {
    if (is_link(device)) return false;
    return !std::isnan(readings_.value(device, up_)) || !std::isnan(readings_.value(device, info_));
  }

  DeviceHealth judge_device(std::size_t device) {
    const DeviceFacts& facts = readings_.devices()[device];
    const auto [known, is_new] = pasts_.try_emplace(facts.uuid, blank_);
    Past& past = known->second;
    if (is_new) resume_past(past, facts.uuid);
    if (!past.first_seen) past.first_seen = now_;
    see_links(facts, past);
    see_proofs(device, past);
    DeviceHealth health{facts.labels, facts.gpu, facts.uuid, facts.vendor, facts.model, facts.pci_address};
    for (const Rule& rule : rules_) {
      if (!rule.is_of_links) judge_rule(rule, device, past, health.findings);
      for (std::size_t i = 0; rule.is_of_links && i < facts.links.size(); ++i) {
        const std::uint32_t link = facts.links[i];
        judge_rule(rule, link, pasts_.at(readings_.devices()[link].uuid), health.findings);
      }
    }
    advise(device, past, health.advice);
    const bool is_released = readings_.released().contains(facts.collector);
    if (is_released) {
      past.forget();
      for (const std::uint32_t link : facts.links) pasts_.at(readings_.devices()[link].uuid).forget();
    }
    const double up = readings_.value(device, up_);
    if (is_released || !(up > 0)) health.advice.clear();
    if (is_released || std::isnan(up)) {
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

  // A link gets series when it has something to say. If it gets them later than its device, and not together
  // with many others, its counters have just begun to count, and it was up.
  void see_links(const DeviceFacts& device, const Past& past) {
    constexpr std::size_t kMostAtOnce = 4;
    std::vector<Past*> fresh;
    for (const std::uint32_t link : device.links) {
      const std::string& uuid = readings_.devices()[link].uuid;
      const auto [known, is_new] = pasts_.try_emplace(uuid, blank_link_);
      if (!is_new) continue;
      resume_past(known->second, uuid);
      fresh.push_back(&known->second);
    }
    if (fresh.size() > kMostAtOnce || now_ - *past.first_seen < kSettled) return;
    for (Past* link : fresh) begin_at_zero(*link);
  }

  void begin_at_zero(Past& link) const {
    for (const Rule& rule : rules_) {
      if (!rule.is_of_links) continue;
      for (const Place& place : rule.places) {
        if (place.term->over == Over::rise) link.windows[place.past].begin_at(0);
        if (place.keeps_highest()) link.windows[place.past].add(Over::highest, place.term->window, 1, now_);
      }
    }
  }

  // What a reset or a reboot would clear is cleared. Events that are seen together with the proof are from
  // before it: a lost device has no series until it returns.
  void see_proofs(std::size_t device, Past& past) const {
    bool was_reset = false;
    for (std::size_t i = 0; i < proofs_.size(); ++i) {
      const double value = readings_.value(device, proofs_[i]);
      if (std::isnan(value)) continue;
      const double before =
          std::isnan(past.proofs[i]) ? first_count(proofs_of_reset()[i], past) : past.proofs[i];
      was_reset = was_reset || value > before;
      past.proofs[i] = value;
    }
    if (!was_reset) return;
    for (const Rule& rule : rules_) {
      const Action action = rule.condition->action;
      if (action != Action::reset && action != Action::reboot) continue;
      for (const Place& place : rule.places) {
        if (place.term->over != Over::event) continue;
        look(place, device, past);
        past.events[place.past].forget();
      }
    }
  }

  void advise(std::size_t device, Past& past, std::vector<Advice>& to) const {
    const DeviceFacts& facts = readings_.devices()[device];
    for (const AdvisoryRule& rule : advisory_rules_) {
      const bool is_of_vendor = facts.vendor == "nvidia" || rule.advisory->from.empty();
      bool holds = is_of_vendor && concerns(*rule.advisory, facts.model, facts.driver, now_);
      for (const Place& place : rule.places) {
        const double value = look(place, device, past);
        holds = passes(place, device, value, limit(place, device, value, past)) && holds;
      }
      const Advisory& said = *rule.advisory;
      if (holds) to.push_back({std::string(said.name), std::string(said.text), std::string(said.source)});
    }
  }

  /// Of a device or link that this process sees for the first time.
  void resume_past(Past& past, const std::string& uuid) const {
    const auto earlier = earlier_.find(uuid);
    if (earlier == earlier_.end()) return;
    for (const Rule& rule : rules_) {
      if (rule.is_of_links != past.is_of_link) continue;
      for (const Place& place : rule.places) {
        if (!place.is_kept()) continue;
        const auto event = earlier->second.find(place.series());
        if (event == earlier->second.end()) continue;
        if (place.counts_events_of_daemon()) {
          past.events[place.past].resume(event->second);
        } else if (place.keeps_growth()) {
          past.windows[place.past].resume(event->second, place.term->window);
        } else {
          past.windows[place.past].add(Over::highest, place.term->window, event->second.count, now_);
        }
      }
    }
  }

  // Every term is looked at in each turn, because a window must not miss a value.
  void judge_rule(const Rule& rule, std::size_t device, Past& past, std::vector<Finding>& to) const {
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
    auto& since = past.since[static_cast<std::size_t>(&rule - rules_.data())];
    if (!is_held(*rule.condition, since, holds)) return;
    const double value = rule.places.front().term->reading.text.empty() ? first : 1;
    add(to, finding_of(*rule.condition, value, of, *since, readings_.devices()[device].link),
        rule.is_of_links);
  }

  /// What a counter of events had before its first value: 0 if it came later than its device, as one of the
  /// kernel's log does with its first event; a driver's may have counted for long.
  double first_count(const Reading& reading, const Past& past) const {
    const bool is_late = past.first_seen && now_ - *past.first_seen >= kSettled;
    return reading.family == &catalog::events && is_late ? 0 : kAbsent;
  }

  double look(const Place& place, std::size_t device, Past& past) const {
    const Term& term = *place.term;
    double value = readings_.value(device, place.column);
    if (std::isnan(value)) value = term.reading.if_absent;
    if (term.over == Over::now) return value;
    if (term.over == Over::event) {
      if (!std::isnan(value)) past.events[place.past].begin_at(first_count(term.reading, past));
      return past.events[place.past].add(term.window, value, now_);
    }
    if (term.over == Over::rise && !keeps_) return kAbsent;
    return past.windows[place.past].add(term.over, term.window, value, now_);
  }

  double limit(const Place& place, std::size_t device, double value, Past& past) const {
    const Term& term = *place.term;
    if (!place.compares_with_usual())
      return term.threshold * (place.of ? readings_.value(device, *place.of) : 1);
    const double own = past.windows[place.past].add(Over::highest, term.window, value, now_);
    return std::isnan(value) ? own : std::max(own, peers_.usual(place, readings_.devices()[device]));
  }

  bool passes(const Place& place, std::size_t device, double value, double limit) const {
    if (std::isnan(value)) return false;
    const bool is_limited = !place.compares_devices() || place.compares_with_usual();
    if (!is_limited) return peers_.differs(place, readings_.devices()[device], value);
    // Both are false if the limit is absent.
    return place.term->compare == Compare::above ? value > limit : value < limit;
  }

  bool is_held(const Condition& condition, std::optional<Nanoseconds>& since, bool holds) const {
    if (!holds) {
      since.reset();
      return false;
    }
    if (!since) since = now_;
    return !keeps_ || now_ - *since >= condition.hold;
  }

  // While drivers are closed on request, their devices are not read and not missing.
  std::vector<Finding> judge_machine() {
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
  double count_read(const std::string& vendor) const {
    double read = 0;
    for (std::size_t device = 0; device < readings_.devices().size(); ++device) {
      const bool is_its = vendor == kAnyVendor || readings_.devices()[device].vendor == vendor;
      const bool is_there = readings_.value(device, up_) > 0 || readings_.value(device, suspended_) > 0;
      if (is_its && is_there && !is_link(device)) ++read;
    }
    return read;
  }

  const bool keeps_;
  Readings readings_{all_conditions(), other_readings()};
  const std::size_t up_ = readings_.column({&catalog::up});
  const std::size_t info_ = readings_.column({&catalog::info});
  const std::size_t suspended_ = readings_.column({&catalog::suspended, {}, Reduce::highest});
  std::vector<Rule> rules_;
  std::vector<AdvisoryRule> advisory_rules_;
  std::vector<std::size_t> proofs_;  ///< columns
  Past blank_ = {};                  ///< of a device that was never seen
  Past blank_link_ = {};             ///< the same of a link
  Peers peers_;
  Nanoseconds now_{};
  Events earlier_;
  std::unordered_map<std::string, Past> pasts_;                      ///< by uuid, also of the links
  std::map<std::string, std::optional<Nanoseconds>> missing_since_;  ///< by vendor
};

Judge::Judge(History history) : state_(std::make_unique<State>(history == History::kept)) {}
Judge::~Judge() = default;
Report Judge::judge(const Store& store, Nanoseconds now) { return state_->judge(store, now); }
void Judge::resume(Events earlier) { state_->resume(std::move(earlier)); }
Events Judge::events() const { return state_->events(); }

}  // namespace gpumeter::health
