#include "programs/benchmark/measure/pace.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace gpumeter::benchmark {
namespace {

constexpr int kMostRuns = 200;

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Sample sample_of(std::vector<double> seconds) {
  Sample sample;
  sample.runs = static_cast<int>(seconds.size());
  sample.median = median_of(seconds);
  for (double& each : seconds) each = std::abs(each - sample.median);
  sample.deviation = median_of(seconds);
  return sample;
}

}  // namespace

std::optional<Sample> repeat(const Pace& pace, const std::function<std::optional<double>()>& once) {
  if (pace.is_over() || !once()) return std::nullopt;
  const auto end = Pace::Clock::now() + pace.slice();
  std::vector<double> seconds;
  while (static_cast<int>(seconds.size()) < kMostRuns) {
    if (pace.is_over()) return std::nullopt;
    if (static_cast<int>(seconds.size()) >= kFewestRuns && Pace::Clock::now() >= end) break;
    const std::optional<double> took = once();
    if (!took || !(*took > 0)) return std::nullopt;
    seconds.push_back(*took);
  }
  return sample_of(std::move(seconds));
}

}  // namespace gpumeter::benchmark
