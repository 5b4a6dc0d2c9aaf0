// A message with results of benchmarks, from a sender that may send them, and the section of the state file.
#include <set>
#include <string>

#include "collectors/jobs/benchmarks/results.hpp"
#include "exporter/store/store.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter::jobs::benchmarks {
namespace {

using fuzz::expect;

std::vector<DeviceIdentity> devices() {
  DeviceIdentity device;
  device.index = 3;
  device.info.uuid = "GPU-a";
  device.info.pci_address = "0000:0c:00.0";
  return {device};
}

/// Each series is valid on a page, and no two are the same.
void check(const Results& results) {
  Store store;
  Series series(store.attach(), {});
  series.show(results, devices(), std::chrono::seconds(1));
  std::set<std::string> seen;
  store.walk([&](const Family& family) {
    family.for_each([&](const gpumeter::Series& each) {
      expect(is_acceptable(each.value()));
      std::string key(family.descriptor().name);
      for (const auto& [label, value] : each.labels().pairs()) {
        expect(!value.empty() && value.size() <= 64);
        key += '\n' + std::string(label) + '=' + std::string(value);
      }
      expect(seen.insert(std::move(key)).second);
    });
  });
  expect(seen.size() <= Results::kMostResults + 2);
}

void check_saved(const Results& results) {
  Results again;
  expect(bool(again.restore(results.saved())));
  expect(again.saved() == results.saved());
}

}  // namespace
}  // namespace gpumeter::jobs::benchmarks

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter::jobs::benchmarks;
  const std::string_view text = gpumeter::fuzz::text_of(data, size);
  Results received;
  received.receive(text, devices(), std::chrono::seconds(1'790'000'000), [](gpumeter::jobs::Refusal) {});
  check(received);
  check_saved(received);
  Results restored;
  if (restored.restore(text)) {
    check(restored);
    check_saved(restored);
  }
  return 0;
}
