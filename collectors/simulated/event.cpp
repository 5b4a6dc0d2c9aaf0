#include "collectors/simulated/event.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "base/duration.hpp"
#include "base/enum_names.hpp"
#include "base/text.hpp"

namespace gpumeter::simulated {
namespace {

using Kind = Event::Kind;
constexpr EnumNames<Kind, 32> kVerbs = {{{Kind::hang, "hang"},
                                         {Kind::lose, "lose"},
                                         {Kind::reads, "reads"},
                                         {Kind::overheat, "overheat"},
                                         {Kind::fan, "fan"},
                                         {Kind::throttle, "throttle"},
                                         {Kind::brake, "brake"},
                                         {Kind::slowdown, "slowdown"},
                                         {Kind::reliability, "reliability"},
                                         {Kind::clocks, "clocks"},
                                         {Kind::xid, "xid"},
                                         {Kind::reset, "reset"},
                                         {Kind::recovery, "recovery"},
                                         {Kind::ecc, "ecc"},
                                         {Kind::corrected, "corrected"},
                                         {Kind::remap, "remap"},
                                         {Kind::remap_failure, "remap-failure"},
                                         {Kind::unrepairable, "unrepairable"},
                                         {Kind::repair, "repair"},
                                         {Kind::retirement, "retirement"},
                                         {Kind::memory, "memory"},
                                         {Kind::links, "links"},
                                         {Kind::link_errors, "link-errors"},
                                         {Kind::fabric, "fabric"},
                                         {Kind::fabric_health, "fabric-health"},
                                         {Kind::pcie_width, "pcie-width"},
                                         {Kind::pcie_speed, "pcie-speed"},
                                         {Kind::pcie_fatal, "pcie-fatal"},
                                         {Kind::pcie_replays, "pcie-replays"},
                                         {Kind::hardware, "hardware"},
                                         {Kind::ecc_mode, "ecc-mode"},
                                         {Kind::driver, "driver"}}};
constexpr int kMostXid = 9999;

struct Verb {
  Kind kind;
  int code;
};

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

bool has_form(std::span<const std::string_view> words) {
  return (words.size() == 4 || words.size() == 6) && words[2] == "after" &&
         (words.size() == 4 || words[4] == "for");
}

Result<int> parse_xid(std::string_view text) {
  const int code = parse_number<int>(text).value_or(0);
  if (code >= 1 && code <= kMostXid) return code;
  return Error("no XID " + quoted(text) + "; must be a number from 1 to 9999, such as xid:79");
}

Result<int> parse_action(std::string_view text) {
  const auto* const found = std::find(std::begin(kRecoveryActions), std::end(kRecoveryActions), text);
  if (found != std::end(kRecoveryActions)) return static_cast<int>(found - std::begin(kRecoveryActions));
  return Error("no recovery action " + quoted(text) +
               "; must be none, reset, reboot, drain_p2p or drain_and_reset, such as recovery:reset");
}

Result<Verb> parse_verb(std::string_view word) {
  std::string_view code = word;
  const std::string_view name = take_until(code, ':');
  const auto kind = kVerbs.find(name);
  const bool needs_code = kind == Kind::xid || kind == Kind::recovery;
  if (!kind || (!needs_code && name != word)) {
    return Error("unknown verb " + quoted(word) + "; must be one of " + std::string(kVerbList));
  }
  if (!needs_code) return Verb{*kind, 0};
  const Result<int> number = kind == Kind::xid ? parse_xid(code) : parse_action(code);
  if (!number) return number.error();
  return Verb{*kind, *number};
}

Result<int> parse_device(std::string_view word, int device_count) {
  const int device = parse_number<int>(word).value_or(-1);
  if (device >= 0 && device < device_count) return device;
  const std::string range = device_count == 1 ? "0" : "0 to " + std::to_string(device_count - 1);
  return Error("no device " + quoted(word) + "; must be " + range);
}

Result<Nanoseconds> parse_time(std::string_view word) {
  if (const auto time = parse_duration(word)) return Nanoseconds(*time);
  return Error(quoted(word) + " is not a duration; must be " + std::string(kDurationForm));
}

Result<Event> parse_words(std::span<const std::string_view> words, int device_count) {
  if (!has_form(words)) {
    return Error("must be \"VERB DEVICE after TIME [for TIME]\", such as \"lose 0 after 30s for 10s\"");
  }
  const Result<Verb> verb = parse_verb(words[0]);
  if (!verb) return verb.error();
  const Result<int> device = parse_device(words[1], device_count);
  if (!device) return device.error();
  const Result<Nanoseconds> begin = parse_time(words[3]);
  if (!begin) return begin.error();
  if (words.size() == 4) return Event{verb->kind, *device, *begin, Nanoseconds::max(), verb->code};
  const Result<Nanoseconds> length = parse_time(words[5]);
  if (!length) return length.error();
  return Event{verb->kind, *device, *begin, *begin + *length, verb->code};
}

}  // namespace

Result<Event> parse_event(std::string_view text, int device_count) {
  Result<Event> event = parse_words(words_of(text), device_count);
  return event ? event : Result<Event>(event.error().with("event " + quoted(text)));
}

Timeline::Timeline(std::span<const Event> events, int device) {
  std::copy_if(events.begin(), events.end(), std::back_inserter(events_),
               [&](const Event& event) { return event.device == device; });
}

std::size_t Timeline::holding(Kind kind, Nanoseconds time) const noexcept {
  return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), [&](const Event& event) {
    return event.kind == kind && event.begin <= time && time < event.end;
  }));
}

double Timeline::held_seconds(Kind kind, Nanoseconds time) const noexcept {
  double seconds = 0;
  for (const Event& event : events_) {
    if (event.kind == kind && event.begin <= time) {
      seconds += to_seconds(std::min(time, event.end) - event.begin);
    }
  }
  return seconds;
}

std::size_t Timeline::begun(Kind kind, Nanoseconds time) const noexcept {
  return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), [&](const Event& event) {
    return event.kind == kind && event.begin <= time;
  }));
}

std::size_t Timeline::over(Kind kind, Nanoseconds time) const noexcept {
  return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), [&](const Event& event) {
    return event.kind == kind && event.end <= time;
  }));
}

const Event* Timeline::last(Kind kind, Nanoseconds time, int code) const noexcept {
  const Event* last = nullptr;
  for (const Event& event : events_) {
    if (event.kind != kind || event.code != code || event.begin > time) continue;
    if (last == nullptr || event.begin >= last->begin) last = &event;
  }
  return last;
}

}  // namespace gpumeter::simulated
