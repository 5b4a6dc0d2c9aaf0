#include "programs/benchmark/measure.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/text.hpp"

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

/// "266240K"; 0: no such text.
std::size_t size_in(const std::filesystem::path& file) {
  std::string text;
  std::getline(std::ifstream(file), text);
  std::string_view rest = text;
  const auto kibibytes = take_number<std::size_t>(rest);
  return kibibytes && rest == "K" ? *kibibytes << 10U : 0;
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

std::size_t size_above_caches(const std::string& sysfs) {
  constexpr std::size_t kLeast = std::size_t{64} << 20U;
  std::size_t largest = 0;
  std::error_code failed;
  for (const auto& processor : std::filesystem::directory_iterator(sysfs + "/devices/system/cpu", failed)) {
    std::error_code none;
    for (const auto& cache : std::filesystem::directory_iterator(processor.path() / "cache", none)) {
      largest = std::max(largest, size_in(cache.path() / "size"));
    }
  }
  return std::max(kLeast, largest / 4 * 5);
}

}  // namespace gpumeter::benchmark
