// Answers of NCCL's RAS, tables of sockets, maps of processes, and bytes of libraries.
#include "collectors/sources/tcp.hpp"
#include "exporter/store/store.hpp"
#include "programs/nccl/gate.hpp"
#include "programs/nccl/ras.hpp"
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  answer(text);
  sockets(text);
  libraries(text);
  return 0;
}
