#include "config/relations.hpp"

#include <string>
#include <utility>

#include "base/duration.hpp"
#include "base/series_pattern.hpp"
#include "config/codec.hpp"

namespace gpumeter::config {
namespace {

struct Interval {
  std::string key;
  Duration value;
};

std::string must_not_be(const std::string& where, const Interval& other, Duration value) {
  return "must not be " + where + " " + other.key + ", which is " + duration_text(other.value) + "; it is " +
         duration_text(value);
}

void check_floor(const Interval& tier, const Interval& floor, const Places& places,
                 std::vector<Problem>& problems) {
  if (tier.value >= floor.value) return;
  Problem problem = places.problem(tier.key, 0, must_not_be("below", floor, tier.value));
  if (problem.line == 0) problem.line = places.line_of(floor.key);
  problems.push_back(std::move(problem));
}

// A slower tier with a shorter interval than a faster one is a mistake in units or in the keys' names.
void check_order(const Interval& faster, const Interval& slower, const Places& places,
                 std::vector<Problem>& problems) {
  if (faster.value <= slower.value) return;
  problems.push_back(places.line_of(slower.key) != 0
                         ? places.problem(slower.key, 0, must_not_be("below", faster, slower.value))
                         : places.problem(faster.key, 0, must_not_be("above", slower, faster.value)));
}

void check_sockets(const Jobs& jobs, const Places& places, std::vector<Problem>& problems) {
  if (jobs.socket.empty() || jobs.socket != jobs.stream_socket) return;
  const std::string stream = "jobs.stream_socket";
  problems.push_back(
      places.problem(places.line_of(stream) == 0 ? "jobs.socket" : stream, 0,
                     "must not be the path of the other socket, \"" + printable(jobs.socket) + "\""));
}

void check_patterns(const std::string& key, const std::vector<std::string>& patterns, const Places& places,
                    std::vector<Problem>& problems) {
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const Result<SeriesPattern> parsed = SeriesPattern::parse(patterns[i]);
    if (parsed) continue;
    problems.push_back(
        places.problem(key, i, parsed.error().message() + ", not \"" + printable(patterns[i]) + "\""));
  }
}

}  // namespace

std::vector<Problem> check_relations(const Config& config, const Places& places) {
  const Sampling& sampling = config.sampling;
  const Interval fast = {"sampling.fast", sampling.fast};
  const Interval normal = {"sampling.normal", sampling.normal};
  const Interval slow = {"sampling.slow", sampling.slow};
  const Interval floor = {"sampling.floor", sampling.floor};
  std::vector<Problem> problems;
  for (const Interval& tier : {fast, normal, slow}) check_floor(tier, floor, places, problems);
  check_order(fast, normal, places, problems);
  check_order(normal, slow, places, problems);
  check_sockets(config.jobs, places, problems);
  check_patterns("metrics.include", config.metrics.include, places, problems);
  check_patterns("metrics.exclude", config.metrics.exclude, places, problems);
  return problems;
}

}  // namespace gpumeter::config
