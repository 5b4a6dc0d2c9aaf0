#include "exporter/health/judge.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "collectors/api/catalog.hpp"
#include "exporter/health/readings.hpp"
#include "exporter/health/window.hpp"

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

Finding finding_of(const Condition& condition, double value, double of, Nanoseconds since) {
  std::string text(condition.text);
  replace(text, "{value}", number_text(value));
  replace(text, "{percent}", number_text(100 * value) + " %");
  replace(text, "{of}", number_text(of));
  return {
      std::string(condition.reason), condition.severity,   condition.action, std::move(text), value, since,
      std::string(condition.alert),  runbook_of(condition)};
}

State state_of(const std::vector<Finding>& findings) {
  State worst = State::ok;
  for (const Finding& finding : findings) {
    worst = std::max(worst, finding.severity == Severity::failed ? State::failed : State::degraded);
  }
  return worst;
}

}  // namespace

class Judge::Impl {
 public:
  explicit Impl(History history);

  Report judge(const Store& store, Nanoseconds now);

 private:
  /// A term with the places of its numbers.
  struct Place {
    const Term* term;
    std::size_t column;
    std::optional<std::size_t> of;
    std::size_t past;  ///< among the windows or events of a device
  };
  struct Rule {
    const Condition* condition;
    std::vector<Place> places;
  };
  /// What is kept of one device.
  struct Memory {
    std::vector<Window> windows;
    std::vector<LastEvent> events;
    std::vector<std::optional<Nanoseconds>> since;  ///< by rule: since when all terms hold
    State state = State::unknown;
    std::optional<Nanoseconds> in_state_since;
  };
  /// How often each value of a reading occurs in a group of like devices.
  struct Peers {
    std::map<double, std::size_t> counts;
    bool differs(double value) const;
  };
  using PeersOf = std::map<std::pair<std::size_t, std::string>, Peers>;  ///< by column and group

  void add_place(Rule& rule, const Term& term);
  Memory& memory_of(const std::string& uuid);
  PeersOf peers() const;
  std::string group_of(const Term& term, std::size_t device) const;
  double look(const Place& place, std::size_t device, Memory& memory) const;
  bool passes(const Place& place, std::size_t device, double value) const;
  void judge_rule(std::size_t rule, std::size_t device, Memory& memory, std::vector<Finding>& to);
  DeviceHealth judge_device(std::size_t device);
  std::vector<Finding> judge_machine(const Report& report);
  bool is_held(const Condition& condition, std::optional<Nanoseconds>& since, bool holds) const;

  const bool keeps_;
  std::vector<Rule> rules_;
  std::vector<Term> windows_;
  std::vector<Term> events_;
  Readings readings_;
  std::unordered_map<std::string, Memory> memories_;                 ///< by uuid
  std::map<std::string, std::optional<Nanoseconds>> missing_since_;  ///< by vendor
  Nanoseconds now_{};
  PeersOf peers_;
};

Judge::Impl::Impl(History history) : keeps_(history == History::kept), readings_(all_conditions()) {
  for (const Condition& condition : all_conditions()) {
    if (condition.reason == devices_missing().reason) continue;
    Rule& rule = rules_.emplace_back(Rule{&condition, {}});
    for (const Term& term : condition.terms) {
      if (term.reading.family != nullptr) add_place(rule, term);
    }
  }
}

void Judge::Impl::add_place(Rule& rule, const Term& term) {
  Place place{&term, readings_.column(term.reading), std::nullopt, 0};
  if (term.of.family != nullptr) place.of = readings_.column(term.of);
  if (term.over == Over::event) {
    place.past = events_.size();
    events_.push_back(term);
  } else if (term.over != Over::now) {
    place.past = windows_.size();
    windows_.push_back(term);
  }
  rule.places.push_back(place);
}

Judge::Impl::Memory& Judge::Impl::memory_of(const std::string& uuid) {
  const auto [known, is_new] = memories_.try_emplace(uuid);
  Memory& memory = known->second;
  if (is_new) {
    memory.windows.resize(windows_.size());
    for (const Term& term : events_) memory.events.emplace_back(term.from_zero);
    memory.since.resize(rules_.size());
  }
  return memory;
}

Report Judge::Impl::judge(const Store& store, Nanoseconds now) {
  now_ = now;
  readings_.copy_from(store);
  peers_ = peers();
  Report report;
  report.at = now;
  const std::size_t up = readings_.column({&catalog::up});
  const std::size_t info = readings_.column({&catalog::info});
  for (std::size_t device = 0; device < readings_.devices().size(); ++device) {
    // A device that was forgotten has no series any more.
    if (std::isnan(readings_.value(device, up)) && std::isnan(readings_.value(device, info))) continue;
    report.devices.push_back(judge_device(device));
  }
  std::ranges::stable_sort(report.devices, {}, [](const DeviceHealth& each) { return each.labels.order(); });
  report.machine = judge_machine(report);
  report.state = report.devices.empty() && report.machine.empty() ? State::unknown : state_of(report.machine);
  for (const DeviceHealth& device : report.devices) report.state = std::max(report.state, device.state);
  return report;
}

DeviceHealth Judge::Impl::judge_device(std::size_t device) {
  const DeviceFacts& facts = readings_.devices()[device];
  Memory& memory = memory_of(facts.uuid);
  DeviceHealth health{facts.labels,   facts.gpu, facts.uuid, facts.vendor, facts.model, facts.pci_address,
                      State::unknown, {},        {}};
  const bool is_read = !std::isnan(readings_.value(device, readings_.column({&catalog::up})));
  const bool is_released = readings_.released().contains(facts.collector);
  for (std::size_t rule = 0; rule < rules_.size(); ++rule) {
    judge_rule(rule, device, memory, health.findings);
  }
  if (is_released || !is_read) {
    // The driver is closed for a repair, which ends what the events have reported.
    if (is_released) std::ranges::for_each(memory.events, &LastEvent::forget);
    std::ranges::fill(memory.since, std::nullopt);
    health.findings.clear();
  } else {
    std::ranges::stable_sort(health.findings, std::ranges::greater(), &Finding::severity);
    health.state = state_of(health.findings);
  }
  if (!memory.in_state_since || memory.state != health.state) memory.in_state_since = now_;
  memory.state = health.state;
  health.since = *memory.in_state_since;
  return health;
}

void Judge::Impl::judge_rule(std::size_t number, std::size_t device, Memory& memory,
                             std::vector<Finding>& to) {
  const Rule& rule = rules_[number];
  bool holds = true;
  double first = kAbsent;
  for (const Place& place : rule.places) {
    const double value = look(place, device, memory);
    if (std::isnan(first)) first = value;
    holds = passes(place, device, value) && holds;
  }
  std::optional<Nanoseconds>& since = memory.since[number];
  if (!is_held(*rule.condition, since, holds)) return;
  const Place& place = rule.places.front();
  const double of = place.of ? readings_.value(device, *place.of) : kAbsent;
  const Finding finding =
      finding_of(*rule.condition, place.term->reading.text.empty() ? first : 1, of, *since);
  const auto is_same = [&](const Finding& other) {
    return other.reason == finding.reason && other.action == finding.action &&
           other.severity == finding.severity;
  };
  if (std::ranges::none_of(to, is_same)) to.push_back(finding);
}

bool Judge::Impl::is_held(const Condition& condition, std::optional<Nanoseconds>& since, bool holds) const {
  if (!holds) {
    since.reset();
    return false;
  }
  if (!since) since = now_;
  return !keeps_ || now_ - *since >= condition.hold;
}

double Judge::Impl::look(const Place& place, std::size_t device, Memory& memory) const {
  const Term& term = *place.term;
  double value = readings_.value(device, place.column);
  if (std::isnan(value)) value = term.reading.if_absent;
  switch (term.over) {
    case Over::now:
      return value;
    case Over::event:
      return memory.events[place.past].add(term.window, value, now_);
    case Over::rise:
      if (!keeps_) return kAbsent;
      break;
    case Over::mean:
    case Over::highest:
      break;
  }
  return memory.windows[place.past].add(term.over, term.window, value, now_);
}

bool Judge::Impl::passes(const Place& place, std::size_t device, double value) const {
  const Term& term = *place.term;
  if (std::isnan(value)) return false;
  if (term.compare == Compare::differs_in_model || term.compare == Compare::differs_in_vendor) {
    return peers_.at({place.column, group_of(term, device)}).differs(value);
  }
  const double limit = term.threshold * (place.of ? readings_.value(device, *place.of) : 1);
  return term.compare == Compare::above ? value > limit : value < limit;  // false if the limit is absent
}

std::string Judge::Impl::group_of(const Term& term, std::size_t device) const {
  const DeviceFacts& facts = readings_.devices()[device];
  return term.compare == Compare::differs_in_vendor ? facts.vendor : facts.vendor + '\n' + facts.model;
}

Judge::Impl::PeersOf Judge::Impl::peers() const {
  PeersOf peers;
  for (const Rule& rule : rules_) {
    for (const Place& place : rule.places) {
      const Compare compare = place.term->compare;
      if (compare != Compare::differs_in_model && compare != Compare::differs_in_vendor) continue;
      for (std::size_t device = 0; device < readings_.devices().size(); ++device) {
        const double value = readings_.value(device, place.column);
        if (!std::isnan(value)) ++peers[{place.column, group_of(*place.term, device)}].counts[value];
      }
    }
  }
  return peers;
}

// If no value has a majority, every device differs from most others.
bool Judge::Impl::Peers::differs(double value) const {
  std::size_t all = 0;
  for (const auto& [each, count] : counts) all += count;
  return 2 * counts.at(value) <= all;
}

// "any" counts the GPUs of all vendors.
std::vector<Finding> Judge::Impl::judge_machine(const Report& report) {
  std::vector<Finding> findings;
  const std::size_t up = readings_.column({&catalog::up});
  for (const auto& [vendor, expected] : readings_.expected()) {
    double read = 0;
    for (std::size_t device = 0; device < readings_.devices().size(); ++device) {
      const bool counts = vendor.empty() || vendor == "any" || readings_.devices()[device].vendor == vendor;
      if (counts && readings_.value(device, up) > 0) ++read;
    }
    const bool is_unknown = std::ranges::any_of(
        report.devices, [](const DeviceHealth& each) { return each.state == State::unknown; });
    std::optional<Nanoseconds>& since = missing_since_[vendor];
    if (!is_held(devices_missing(), since, read < expected && !is_unknown)) continue;
    findings.push_back(finding_of(devices_missing(), read, expected, *since));
    if (!vendor.empty() && vendor != "any") replace(findings.back().text, "GPUs", vendor + " GPUs");
  }
  return findings;
}

Judge::Judge(History history) : impl_(std::make_unique<Impl>(history)) {}
Judge::~Judge() = default;
Judge::Judge(Judge&&) noexcept = default;
Judge& Judge::operator=(Judge&&) noexcept = default;

Report Judge::judge(const Store& store, Nanoseconds now) { return impl_->judge(store, now); }

}  // namespace gpumeter::health
