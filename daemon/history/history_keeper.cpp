#include "daemon/history/history_keeper.hpp"

#include <chrono>
#include <optional>

namespace gpumeter {
namespace {

constexpr Nanoseconds kSecond = std::chrono::seconds(1);
// Early enough for the second, and late enough that a timer's error does not fall into the second before.
constexpr Nanoseconds kWithin = std::chrono::milliseconds(50);

// How often the thread asks whether it may begin.
constexpr auto kUntilBegin = std::chrono::milliseconds(50);

/// Time until the history's next second, which it counts by CLOCK_BOOTTIME.
Nanoseconds until_next(Nanoseconds now) { return kSecond - now % kSecond + kWithin; }

}  // namespace

Result<Done> HistoryKeeper::start(std::function<bool()> may_begin) {
  return worker_.start("history", [this, may_begin = std::move(may_begin)]() -> std::optional<Nanoseconds> {
    has_begun_ = has_begun_ || may_begin();
    if (!has_begun_) return kUntilBegin;
    history_.sample();
    live_.refresh();
    return until_next(clock_.boottime());
  });
}

}  // namespace gpumeter
