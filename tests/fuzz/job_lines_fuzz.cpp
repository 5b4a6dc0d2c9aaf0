// What any process may send to the jobs' socket: as a stream, cut at a place that the first byte says, and
// what comes out of it into a run model.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collectors/jobs/model/run_model.hpp"
#include "collectors/jobs/wire/payload.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter::jobs {
namespace {

std::vector<std::string> payloads_of(std::string_view bytes, std::size_t at_a_time) {
  StreamSplitter splitter;
  std::vector<std::string> payloads;
  while (!bytes.empty() && !splitter.broken()) {
    const auto room = splitter.room();
    fuzz::expect(!room.empty());
    const std::size_t count = std::min({bytes.size(), room.size(), at_a_time});
    std::ranges::copy(bytes.substr(0, count), room.begin());
    bytes.remove_prefix(count);
    splitter.received(count);
    while (const auto payload = splitter.next()) payloads.emplace_back(*payload);
  }
  return payloads;
}

/// Every line is one that a page can hold, and no two are the same.
void check(const JobSnapshot& snapshot) {
  std::set<std::string> seen;
  for (const JobSeries& line : snapshot.series) {
    fuzz::expect(is_acceptable(line.value / 1e9));
    const std::string_view name = line.series.family->name;
    const bool may_be_negative = line.series.family->type == MetricType::gauge && !name.ends_with("_seconds");
    fuzz::expect(may_be_negative || line.value >= 0);
    std::string key = std::string(line.series.family->name) + std::string(line.suffix);
    for (const Label& label : line.series.labels) {
      fuzz::expect(!label.value.empty() && label.value.size() <= 64);
      key += '\n' + label.name + '=' + label.value;
    }
    fuzz::expect(seen.insert(std::move(key)).second);
  }
}

}  // namespace
}  // namespace gpumeter::jobs

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::text_of(data, size).substr(1);
  const auto payloads = jobs::payloads_of(bytes, data[0] + 1U);
  fuzz::expect(payloads == jobs::payloads_of(bytes, bytes.size()));

  // A rank, its fork, one of another workload, and one of whom nothing is known.
  const jobs::SenderFacts facts[] = {
      {std::chrono::seconds(4000), {cgroup::Kind::pod, "p"}, {}},
      {std::chrono::seconds(5000), {cgroup::Kind::pod, "p"}, {0, 3}},
      {std::chrono::seconds(4999), {cgroup::Kind::container, std::string(64, 'c')}, {1}}};
  jobs::RunModel model({}, [](const jobs::SenderId& id) { return id.pid % 3 != 0; });
  jobs::Moment now{std::chrono::seconds(5000), std::chrono::seconds(1'700'000'000)};
  std::int32_t pid = 0;
  for (const std::string& payload : payloads) {
    const auto kind = static_cast<std::size_t>(pid % 4);
    model.receive({{1000, pid++ % 7, 1}, "user", kind < 3 ? &facts[kind] : nullptr}, payload, now);
    now = now.at(now.unix + std::chrono::seconds(1));
  }
  model.receive({{1000, 8, 1}, "user"}, bytes, now);
  model.tick(now);
  jobs::check(*model.snapshot());
  model.tick(now.at(now.unix + std::chrono::hours(1)));
  model.tick(now.at(now.unix + std::chrono::hours(2)));
  return 0;
}
