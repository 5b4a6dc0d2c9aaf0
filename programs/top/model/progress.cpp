#include "programs/top/model/progress.hpp"

#include <algorithm>

namespace gpumeter::top {
namespace {

constexpr double kWindowSeconds = 60;
constexpr double kLeastSeconds = 10;  // less would show 0 and 2 steps by turns

/// The increase of a counter; nullopt if it is unknown, restarted or stood still.
Number increase(Number from, Number to) {
  if (!from || !to || *to <= *from) return std::nullopt;
  return *to - *from;
}

Number ratio(Number part, Number whole) {
  if (!part || !whole || *whole <= 0) return std::nullopt;
  return *part / *whole;
}

Number value_in(const Readings& readings, const std::string& name) {
  const auto found = std::ranges::find(readings, name, &Reading::name);
  return found == readings.end() ? Number(0) : found->value;
}

}  // namespace

void Progress::update(Snapshot& snapshot, double now_seconds) {
  std::map<std::pair<std::string, std::string>, Window> kept;
  for (Run& run : snapshot.runs) {
    const std::pair key(run.name, run.user);
    Window& window = kept[key] = std::move(windows_[key]);
    const double at = now_seconds - run.age_seconds;
    if (window.empty() || at > window.back().seconds)
      window.push_back({at, run.steps, run.requests, run.phases});
    while (window.front().seconds < at - kWindowSeconds) window.pop_front();
    fill_in(run, window);
  }
  windows_ = std::move(kept);
}

void Progress::fill_in(Run& run, const Window& window) {
  const Point& from = window.front();
  const double seconds = window.back().seconds - from.seconds;
  const auto rate = [&](Number then, Number total) {
    if (!run.status.empty()) return Number();
    const bool is_known = then && total && *total >= *then && seconds >= kLeastSeconds;
    return is_known ? Number((*total - *then) / seconds) : ratio(total, run.run_seconds);
  };
  run.step_rate = rate(from.steps, run.steps);
  run.request_rate = rate(from.requests, run.requests);
  Number most;
  for (const Reading& phase : run.phases) {
    const Number recent = increase(value_in(from.phases, phase.name), phase.value);
    if (!recent || *recent <= most.value_or(0)) continue;
    most = recent;
    run.phase = phase.name;
  }
  run.phase_seconds = ratio(most, increase(from.steps, run.steps));
}

}  // namespace gpumeter::top
