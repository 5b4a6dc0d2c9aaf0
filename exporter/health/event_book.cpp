#include "exporter/health/event_book.hpp"

#include <cmath>
#include <utility>

#include "base/records.hpp"

namespace gpumeter::health {
namespace {

constexpr std::string_view kEvent = "event";
// More than a machine's devices have kinds of events.
constexpr std::size_t kMostEvents = 100'000;

}  // namespace

void EventBook::put(Events events) {
  const MutexLock lock(mutex_);
  events_ = std::move(events);
}

Events EventBook::get() const {
  const MutexLock lock(mutex_);
  return events_;
}

std::string EventBook::save() const {
  RecordWriter out;
  const MutexLock lock(mutex_);
  for (const auto& [uuid, events] : events_) {
    for (const auto& [series, event] : events) {
      out.begin(kEvent).text(uuid).text(series).number(event.count).time(event.at);
    }
  }
  return out.take();
}

Result<Done> EventBook::load(std::string_view section, bool is_of_this_boot) {
  Events events;
  std::size_t count = 0;
  RecordReader in(section);
  while (in.next()) {
    std::string uuid = in.text();
    std::string series = in.text();
    const OngoingEvent event{in.number(), in.time()};
    if (in.kind() != kEvent || !std::isfinite(event.count) || event.count <= 0 || ++count > kMostEvents)
      in.fail();
    events[std::move(uuid)][std::move(series)] = event;
  }
  if (in.failed()) return Error("the events of devices, line " + std::to_string(in.line()));
  if (is_of_this_boot) put(std::move(events));
  return Done{};
}

}  // namespace gpumeter::health
