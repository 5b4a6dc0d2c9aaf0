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
constexpr EnumNames<Kind, 4> kVerbs = {
    {{Kind::hang, "hang"}, {Kind::lose, "lose"}, {Kind::overheat, "overheat"}, {Kind::throttle, "throttle"}}};

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

Result<Kind> parse_verb(std::string_view word) {
  if (const auto kind = kVerbs.find(word)) return *kind;
  return Error("unknown verb " + quoted(word) + "; must be hang, lose, overheat or throttle");
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
  const Result<Kind> kind = parse_verb(words[0]);
  if (!kind) return kind.error();
  const Result<int> device = parse_device(words[1], device_count);
  if (!device) return device.error();
  const Result<Nanoseconds> begin = parse_time(words[3]);
  if (!begin) return begin.error();
  if (words.size() == 4) return Event{*kind, *device, *begin, Nanoseconds::max()};
  const Result<Nanoseconds> length = parse_time(words[5]);
  if (!length) return length.error();
  return Event{*kind, *device, *begin, *begin + *length};
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

bool Timeline::holds(Kind kind, Nanoseconds time) const noexcept {
  return std::any_of(events_.begin(), events_.end(), [&](const Event& event) {
    return event.kind == kind && event.begin <= time && time < event.end;
  });
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

std::optional<Nanoseconds> Timeline::last_begin(Kind kind, Nanoseconds time) const noexcept {
  std::optional<Nanoseconds> last;
  for (const Event& event : events_) {
    if (event.kind == kind && event.begin <= time) last = std::max(last.value_or(event.begin), event.begin);
  }
  return last;
}

}  // namespace gpumeter::simulated
