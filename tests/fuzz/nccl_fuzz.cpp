// Answers of NCCL's RAS, tables of sockets, maps of processes, bytes of libraries, files of NCCL Inspector,
// and dumps of PyTorch's flight recorder.
#include <cmath>

#include "collectors/nccl/answer.hpp"
#include "collectors/nccl/files/flight_dump.hpp"
#include "collectors/nccl/files/inspector_page.hpp"
#include "collectors/nccl/files/pickle.hpp"
#include "collectors/nccl/progress.hpp"
#include "collectors/nccl/version.hpp"
#include "collectors/sources/tcp/listeners.hpp"
#include "exporter/store/store.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

using namespace gpumeter;

using fuzz::expect;

void answer(std::string_view text) {
  const auto parsed = nccl::parse_answer(text);
  if (!parsed) return;
  std::size_t ranks = 0;
  for (const nccl::Communicator& communicator : parsed->communicators) ranks += communicator.ranks.size();
  expect(ranks <= nccl::kMostRanks);
  Store store;
  SeriesList series(store.attach());
  nccl::Progress progress;
  for (int at = 0; at < 3; ++at) {
    progress.update(
        *parsed, [](const nccl::Rank& rank) { return rank.rank % 2 == 0; }, std::chrono::seconds(at));
    progress.write(Labels({{"run", "r"}}), series);
    series.commit(std::chrono::seconds(at));
  }
  store.walk([&](const Family& family) {
    std::size_t count = 0;
    family.for_each(
        [&](const Series& one) { expect(one.value() >= 0 && ++count <= nccl::Progress::kMostNamed); });
  });
}

void sockets(std::string_view text) {
  for (const bool is_ip6 : {false, true}) {
    for (const auto& each : tcp::listeners_in(text, is_ip6)) {
      expect(each.address.empty() || each.is_ip6() == is_ip6);
    }
  }
}

void libraries(std::string_view text) {
  for (const nccl::Mapping& each : nccl::libraries_in(text)) expect(!each.path.empty());
  if (const auto version = nccl::find_version(text))
    expect(nccl::parse_version(to_string(*version)) == version);
}

void inspector(std::string_view text) {
  const nccl::InspectorPage page = nccl::parse_inspector_page(text);
  expect(page.means.size() <= nccl::kMostKeys);
  for (const auto& [key, means] : page.means) {
    expect(!key.op.empty() && !key.size.empty() && !key.scope.empty());
    expect(!means.bandwidth || std::isfinite(*means.bandwidth) || *means.bandwidth > 0);
    expect(means.bandwidth || means.duration);
  }
}

void dump(std::string_view bytes) {
  if (const auto pickle = nccl::Pickle::parse(bytes)) {
    for (const auto member : pickle->members(pickle->root(), 1000))
      expect(pickle->members(member, 10).size() <= 10);
  }
  const auto parsed = nccl::parse_flight_dump(bytes);
  if (!parsed) return expect(!parsed.error().message().empty());
  expect(!parsed->groups.empty() && parsed->groups.size() <= nccl::kMostGroups);
  for (const auto& group : parsed->groups) expect(!group.name.empty() && group.enqueued.value_or(0) >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  answer(text);
  sockets(text);
  libraries(text);
  inspector(text);
  dump(text);
  return 0;
}
