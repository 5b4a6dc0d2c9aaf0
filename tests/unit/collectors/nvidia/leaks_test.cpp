#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "collectors/nvidia/collector.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/nvidia_gpu.hpp"
#include "tests/fakes/requirements.hpp"

// A thousand losses and returns of one GPU leave no more behind than a hundred.

namespace gpumeter::nvidia {
namespace {

long entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

long resident_bytes() {
  long size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

struct Usage {
  long threads = entries("/proc/self/task"), files = entries("/proc/self/fd"), bytes = resident_bytes();
  std::string opened;
};

void expect_no_growth(const Usage& early, const Usage& late) {
  constexpr long kMiB = 1 << 20;
  EXPECT_EQ(late.threads, early.threads);
  EXPECT_EQ(late.files, early.files);
  EXPECT_EQ(late.opened, early.opened);
  if (!kIsSanitized) {  // a sanitizer keeps freed memory for a while
    EXPECT_LE(late.bytes - early.bytes, kMiB);
  }
}

// Lost from 1 s to 2 s of every 3 s. `others`: GPUs which stay.
std::string losses(const std::string& others) {
  return R"(
devices:
  - {uuid: GPU-0, power: {draw: 1 W}, fields: {82: 50, 83: {rate: 1000}}, supported_events: [xid],
     samples: {power: {period_ms: 100, capacity: 20, value: 1 W}}, lost: {from: 1, until: 2, every: 3, times: 1000}}
)" + others;
}

constexpr int kCycles = kIsSanitized ? 200 : 1000;  // a sanitizer makes each take ten times as long
constexpr int kEarly = 100;

/// Calls `cycle` with the second at which each cycle begins. Then the GPU is read, lost and released.
void expect_flat(FakeDriver& driver, const std::function<void(double)>& cycle) {
  NvidiaGpu gpu(driver);
  Usage early;
  for (int i = 0; i < kCycles; ++i) {
    const double begin = 3.0 * i;
    gpu.attach(begin).pass(Tier::fast, begin + 0.5);
    cycle(begin + 0.6);
    ASSERT_EQ(gpu.pass(Tier::fast, begin + 1.2, 1), PassOutcome::unread);
    ASSERT_EQ(gpu.pass(Tier::fast, begin + 1.4, 1), PassOutcome::gone);
    cycle(begin + 1.6);
    if (i == kEarly) early = {.opened = driver.opened()};
  }
  const Usage late{.opened = driver.opened()};
  expect_no_growth(early, late);
  gpu.attach(3.0 * kCycles).pass(Tier::fast, 3.0 * kCycles);
  EXPECT_EQ(gpu.lines({"gpu_events_total"}), "gpu_events_total{event=\"bus_lost\"} " +
                                                 std::to_string(kCycles) +
                                                 "\ngpu_events_total{event=\"reset_required\"} 0\n"
                                                 "gpu_events_total{event=\"returned\"} " +
                                                 std::to_string(kCycles) + "\n");
  gpu.page().release();
}

TEST(NvidiaLeaks, AThousandLossesOfTheOnlyGpu) {
  FakeDriver driver(losses(""));
  expect_flat(driver, [](double) {});
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
  EXPECT_EQ(driver.violations(), "");
}

TEST(NvidiaLeaks, AThousandLossesWhileDiscoveryAndEventsGoOn) {
  FakeDriver driver(losses("  - {uuid: GPU-1, power: {draw: 2 W}, supported_events: [xid]}\n"));
  const FakeClock clock;
  auto collector = *open_nvidia({"/nonexistent", "/proc", &clock, {{"library", {driver.library()}}}});
  NvidiaGpu well(driver, "GPU-1");
  well.attach();
  expect_flat(driver, [&](double at) {
    driver.set_time(at);
    ASSERT_TRUE(collector->discover());
    dynamic_cast<WatchesEvents&>(*collector).wait_for_events(Nanoseconds{0});
    ASSERT_EQ(well.pass(Tier::fast, at, 1), PassOutcome::complete);
  });
  well.page().release();
  collector.reset();
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
  EXPECT_EQ(driver.violations(), "");
}

}  // namespace
}  // namespace gpumeter::nvidia
