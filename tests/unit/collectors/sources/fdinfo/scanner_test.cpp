#include "collectors/sources/fdinfo/scanner.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/fake_drm_procfs.hpp"

namespace gpumeter::fdinfo {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr const char* kCard = "0000:03:00.0";
constexpr auto kEvery = seconds(5);

/// A clock that the test owns.
std::shared_ptr<const Clock> shared(const Clock& clock) { return {std::shared_ptr<void>(), &clock}; }

std::string text_of(int id, int busy_seconds) {
  return "drm-driver: amdgpu\ndrm-pdev: 0000:03:00.0\ndrm-client-id: " + std::to_string(id) +
         "\ndrm-engine-gfx: " + std::to_string(busy_seconds) + "000000000 ns\n";
}

/// A scanner whose time the test moves; it records at whom it looked.
class ScannerTest : public testing::Test {
 protected:
  ScannerTest() { clock_.advance(minutes(10)); }

  Scanner::Sources sources() {
    Scanner::Sources sources{procfs_.procfs(), procfs_.sysfs(), nullptr};
    sources.look = [this](const LookOrder& order, int pid) {
      seen_.push_back(pid);
      return look_at(order, pid);
    };
    sources.own_pid = 7;
    sources.clock = shared(clock_);
    return sources;
  }
  Scanner::Result scan() {
    seen_.clear();
    return scanner_.scan({kCard}, kEvery);
  }
  std::vector<int> seen_after(Nanoseconds time) {
    clock_.advance(time);
    scan();
    return seen_;
  }
  double graphics_of(const Scanner::Result& result) {
    return result.uses.find(kCard)->second->busy_seconds[0].value_or(-1);
  }

  FakeDrmProcfs procfs_;
  FakeClock clock_;
  std::vector<int> seen_;  // by one thread at a time
  Scanner scanner_{sources()};
};

using Pids = std::vector<int>;

TEST_F(ScannerTest, HoldersAreSeenEachTimeAndOthersRarely) {
  procfs_.add(7);  // the daemon itself
  procfs_.add(2, 1, 'S', 0x00200000);
  procfs_.add(10);
  procfs_.add(20);
  procfs_.open(20, 3, "/dev/dri/renderD9128", text_of(1, 0));
  EXPECT_EQ(seen_after(seconds(0)), (Pids{2, 10, 20}));
  EXPECT_EQ(seen_after(kEvery), (Pids{20, 10}));
  EXPECT_EQ(seen_after(kEvery), (Pids{20, 10}));
  EXPECT_EQ(seen_after(kEvery), (Pids{20, 10}));
  EXPECT_EQ(seen_after(kEvery), (Pids{20}));  // after 15 s, process 10 is seen every 7.5 s
  EXPECT_EQ(seen_after(kEvery), (Pids{20, 10}));
  unsigned others = 0;
  for (int i = 0; i < 120; ++i) {
    if (seen_after(kEvery) != Pids{20}) ++others;
  }
  EXPECT_GE(others, 10u);  // in 600 s, at least once a minute
  EXPECT_LE(others, 14u);
}

TEST_F(ScannerTest, AProcessThatOpensADeviceLaterIsFound) {
  procfs_.add(10);
  for (int i = 0; i < 60; ++i) seen_after(kEvery);
  procfs_.open(10, 3, "/dev/dri/renderD9128", text_of(1, 2));
  bool is_found = false;
  for (int i = 0; i < 13 && !is_found; ++i) {
    clock_.advance(kEvery);
    is_found = !scan().uses.find(kCard)->second->processes.empty();
  }
  EXPECT_TRUE(is_found);
}

TEST_F(ScannerTest, OnlyAProcessThatStartedAfterTheLastScanCountsFromZero) {
  const auto ticks = [&] { return static_cast<std::uint64_t>(to_seconds(clock_.boottime()) * 100); };
  procfs_.add(10, ticks());
  procfs_.open(10, 3, "/dev/dri/renderD9128", text_of(1, 1000));
  EXPECT_EQ(graphics_of(scan()), 0);
  clock_.advance(kEvery);
  procfs_.add(20, ticks());
  procfs_.open(20, 3, "/dev/dri/renderD9128", text_of(2, 3));
  EXPECT_EQ(graphics_of(scan()), 3);
  clock_.advance(kEvery);
  procfs_.add(30, ticks() - 600);  // older than the last scan, although it was not listed
  procfs_.open(30, 3, "/dev/dri/renderD9128", text_of(3, 50));
  EXPECT_EQ(graphics_of(scan()), 3);
  procfs_.end(20);
  clock_.advance(kEvery);
  EXPECT_EQ(graphics_of(scan()), 3);
}

TEST_F(ScannerTest, AfterAPauseItStartsAgain) {
  procfs_.add(10);
  procfs_.open(10, 3, "/dev/dri/renderD9128", text_of(1, 0));
  scan();
  clock_.advance(minutes(5));
  procfs_.open(10, 3, "/dev/dri/renderD9128", text_of(1, 100));
  Scanner::Result result = scan();
  EXPECT_EQ(graphics_of(result), 0);
  EXPECT_EQ(result.uses.find(kCard)->second->observed, seconds(0));
}

TEST_F(ScannerTest, WithoutProcfsThereIsNoUse) {
  Scanner scanner({"/does/not/exist", "/sys", nullptr});
  const Scanner::Result result = scanner.scan({kCard}, kEvery);
  EXPECT_FALSE(result.is_whole);
  EXPECT_TRUE(result.uses.empty());
}

/// Looks whose duration a test chooses.
TEST(Scanner, ContinuesWhereItsBudgetEnded) {
  FakeDrmProcfs procfs;
  for (int pid = 1; pid <= 10; ++pid) procfs.add(pid);
  FakeClock clock;
  clock.advance(minutes(10));
  Pids seen;
  Scanner::Sources sources{procfs.procfs(), procfs.sysfs(), nullptr};
  sources.clock = shared(clock);
  sources.look = [&](const LookOrder& order, int pid) {
    if (clock.monotonic() > order.until) return Look{};
    seen.push_back(pid);
    clock.advance(std::chrono::milliseconds(20));
    return look_at({order.procfs, order.sysfs, order.devices, order.clock, Nanoseconds::max()}, pid);
  };
  Scanner scanner(std::move(sources));
  EXPECT_FALSE(scanner.scan({kCard}, kEvery).is_whole);
  EXPECT_EQ(seen, (Pids{1, 2, 3}));
  EXPECT_FALSE(scanner.scan({kCard}, kEvery).is_whole);
  EXPECT_EQ(seen, (Pids{1, 2, 3, 4, 5, 6}));
  EXPECT_FALSE(scanner.scan({kCard}, kEvery).is_whole);
  const Scanner::Result last = scanner.scan({kCard}, kEvery);
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_TRUE(last.is_whole);
  EXPECT_EQ(last.uses.count(kCard), 1u);
}

TEST(Scanner, ALookThatHangsDelaysNoOther) {
  FakeDrmProcfs procfs;
  for (int pid = 1; pid <= 3; ++pid) {
    procfs.add(pid);
    procfs.open(pid, 3, "/dev/dri/renderD9128", text_of(pid, 0));
  }
  const auto hangs = std::make_shared<std::atomic<bool>>(true);
  Scanner::Sources sources{procfs.procfs(), procfs.sysfs(), nullptr};
  sources.look = [hangs](const LookOrder& order, int pid) {
    while (pid == 2 && *hangs) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    LookOrder unhurried = order;
    unhurried.until = Nanoseconds::max();
    return look_at(unhurried, pid);
  };
  Scanner scanner(std::move(sources));
  Scanner::Result result = scanner.scan({kCard}, kEvery);
  EXPECT_TRUE(result.is_whole);
  EXPECT_EQ(result.inaccessible, 1u);
  EXPECT_EQ(result.uses.find(kCard)->second->processes.size(), 2u);
  *hangs = false;
}

}  // namespace
}  // namespace gpumeter::fdinfo
