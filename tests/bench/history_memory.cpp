#include <malloc.h>

#include <cstdio>
#include <string>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "exporter/history/history.hpp"
#include "exporter/store/store.hpp"
#include "tests/fakes/fake_clock.hpp"

// Prints the bytes of heap that the history of 8 GPUs takes after half a minute, an hour and six hours, at
// which it is full: one line each with the seconds and the bytes. The clock is a fake one, so this takes
// seconds.
namespace gpumeter::bench {
namespace {

constexpr unsigned kGpus = 8;
constexpr int kPrintAt[] = {30, 3600, 6 * 3600};

std::size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

Source gpu(Store& store, unsigned index) {
  DeviceInfo info;
  info.uuid = "GPU-" + std::to_string(index);
  info.vendor = "nvidia";
  info.model = "Card";
  const Labels labels(info, index, "");
  Source source = store.attach("bench");
  source.set(source.add(catalog::up, labels), 1);
  source.set(source.add(catalog::utilization, labels), 0.5);
  source.set(source.add(catalog::power, labels), 250);
  source.commit({});
  return source;
}

int run() {
  Store store;
  std::vector<Source> sources;
  for (unsigned index = 0; index < kGpus; ++index) sources.push_back(gpu(store, index));
  FakeClock clock;
  const std::size_t before = heap_bytes();
  History history(store, clock);
  int second = 0;
  for (const int until : kPrintAt) {
    for (; second < until; ++second) {
      history.sample();
      clock.advance(std::chrono::seconds(1));
    }
    std::printf("%d %zu\n", second, heap_bytes() - before);
  }
  return 0;
}

}  // namespace
}  // namespace gpumeter::bench

int main() { return gpumeter::bench::run(); }
