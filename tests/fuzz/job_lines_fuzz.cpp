// Data that any process may send to the jobs' socket: a stream, cut at the place given by the first byte. The
// payloads go into a run model.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collectors/jobs/model/run_model.hpp"
#include "collectors/jobs/wire/line.hpp"
#include "exporter/store/store.hpp"
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

/// Each series is valid on a page, and no two are the same.
void check(const Store& store) {
  std::set<std::string> seen;
  store.walk([&](const Family& family) {
    const std::string_view name = family.descriptor().name;
    const bool may_be_negative = family.descriptor().type == MetricType::gauge && !name.ends_with("_seconds");
    family.for_each([&](const Series& series) {
      fuzz::expect(is_acceptable(series.value() / 1e9));
      fuzz::expect(may_be_negative || series.value() >= 0);
      std::string key = std::string(name) + std::to_string(static_cast<int>(series.part()));
      for (const auto& [label, value] : series.labels().pairs()) {
        fuzz::expect(!value.empty() && value.size() <= 64);
        key += '\n' + std::string(label) + '=' + std::string(value);
      }
      fuzz::expect(seen.insert(std::move(key)).second);
    });
  });
}

}  // namespace
}  // namespace gpumeter::jobs

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::text_of(data, size).substr(1);
  const auto payloads = jobs::payloads_of(bytes, data[0] + 1U);
  fuzz::expect(payloads == jobs::payloads_of(bytes, bytes.size()));

  // A rank, its fork, a process of another workload, and one without known facts.
  const jobs::SenderFacts facts[] = {
      {std::chrono::seconds(4000), {cgroup::Kind::pod, "p"}, {}},
      {std::chrono::seconds(5000), {cgroup::Kind::pod, "p"}, {0, 3}},
      {std::chrono::seconds(4999), {cgroup::Kind::container, std::string(64, 'c')}, {1}}};
  Store store;
  Source source = store.attach();
  jobs::RunModel model(source, {}, [](const jobs::SenderId& id) { return id.pid % 3 != 0; });
  jobs::Moment now{std::chrono::seconds(5000), std::chrono::seconds(1'700'000'000)};
  std::int32_t pid = 0;
  for (const std::string& payload : payloads) {
    const auto kind = static_cast<std::size_t>(pid % 4);
    model.receive({{1000, pid++ % 7, 1}, "user", kind < 3 ? &facts[kind] : nullptr}, payload, now);
    now = now.at(now.unix + std::chrono::seconds(1));
  }
  model.receive({{1000, 8, 1}, "user"}, bytes, now);
  model.tick(now);
  source.commit(now.elapsed);
  jobs::check(store);
  model.tick(now.at(now.unix + std::chrono::hours(1)));
  model.tick(now.at(now.unix + std::chrono::hours(2)));
  source.commit(now.elapsed);
  jobs::check(store);
  return 0;
}
