#include "collectors/api/sampling.hpp"

#include <string>
#include <utility>

namespace gpumeter {
namespace {

using options::checked;
using options::Complaint;
using options::Option;
using options::option;
using options::Places;
using options::Problem;
using options::Problems;
using options::Reload;

Complaint check_interval(const Duration& interval) {
  // Below 10 ms the daemon would do nothing but sample; above 1 h its integrals are meaningless.
  if (interval < std::chrono::milliseconds(10) || interval > std::chrono::hours(1)) {
    return "must be from 10ms to 1h";
  }
  return std::nullopt;
}

struct Interval {
  std::string key;
  Duration value;
};

std::string must_not_be(const std::string& where, const Interval& other, Duration value) {
  return "must not be " + where + " " + other.key + ", which is " + duration_text(other.value) + "; it is " +
         duration_text(value);
}

void check_floor(const Interval& tier, const Interval& floor, const Places& places, Problems& problems) {
  if (tier.value >= floor.value) return;
  Problem problem = places.problem(tier.key, 0, must_not_be("below", floor, tier.value));
  if (problem.line == 0) problem.line = places.line_of(floor.key);
  problems.push_back(std::move(problem));
}

// A slower tier with a shorter interval than a faster one is a mistake in units or in the keys' names.
void check_order(const Interval& faster, const Interval& slower, const Places& places, Problems& problems) {
  if (faster.value <= slower.value) return;
  problems.push_back(places.line_of(slower.key) != 0
                         ? places.problem(slower.key, 0, must_not_be("below", faster, slower.value))
                         : places.problem(faster.key, 0, must_not_be("above", slower, faster.value)));
}

void check_tiers(const SamplingIntervals& intervals, const Places& places, Problems& problems) {
  const auto interval = [](const char* key, Nanoseconds value) {
    return Interval{key, std::chrono::duration_cast<Duration>(value)};
  };
  const Interval fast = interval("sampling.fast", intervals.fast);
  const Interval normal = interval("sampling.normal", intervals.normal);
  const Interval slow = interval("sampling.slow", intervals.slow);
  const Interval floor = interval("sampling.floor", intervals.floor);
  for (const Interval& tier : {fast, normal, slow}) check_floor(tier, floor, places, problems);
  check_order(fast, normal, places, problems);
  check_order(normal, slow, places, problems);
}

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&SamplingIntervals::fast>("fast", Reload::applies, "Sampling interval of utilisation, power, clocks, temperatures and throttling.", checked<check_interval>),
    option<&SamplingIntervals::normal>("normal", Reload::applies, "Sampling interval of memory and fans; at least `fast`.", checked<check_interval>),
    option<&SamplingIntervals::slow>("slow", Reload::applies, "Sampling interval of error counters, PCIe and limits; at least `normal`.", checked<check_interval>),
    option<&SamplingIntervals::floor>("floor", Reload::applies, "Minimum of the sampling intervals. Reading a driver more often can slow down the jobs on the device.", checked<check_interval>),
};
// clang-format on

}  // namespace

constinit const options::Section kSamplingSection = options::section<check_tiers>("sampling", kOptions);

Nanoseconds SamplingIntervals::of(Tier tier) const noexcept {
  switch (tier) {
    case Tier::fast:
      return fast;
    case Tier::normal:
      return normal;
    case Tier::slow:
      return slow;
    case Tier::once:
      break;
  }
  return std::chrono::hours(1);
}

}  // namespace gpumeter
