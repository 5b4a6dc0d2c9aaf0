#include "collectors/sources/fdinfo/scanner.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/descriptor.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/fake_drm_procfs.hpp"
#include "tests/fakes/fake_drm_users.hpp"
#include "tests/fakes/real_clock.hpp"

namespace gpumeter::fdinfo {
namespace {

const std::shared_ptr<const Clock> kClock = std::make_shared<SystemClock>();
constexpr const char* kCard = "0000:03:00.0";
constexpr const char* kNode = "/dev/dri/renderD9128";  // no machine has so many
constexpr const char* kText =
    "drm-driver: amdgpu\ndrm-pdev: 0000:03:00.0\ndrm-client-id: 5\ndrm-engine-gfx: 7 ns\n";

class LookTest : public testing::Test {
 protected:
  Look look(int pid) {
    return look_at({procfs_.procfs(),
                    procfs_.sysfs(),
                    {kCard, "fde40000.npu"},
                    kClock,
                    kRealClock.monotonic() + std::chrono::seconds(60)},
                   pid);
  }
  FakeDrmProcfs procfs_;
};

TEST_F(LookTest, ReadsTheClientsOfADevice) {
  procfs_.node("renderD9128", kCard);
  procfs_.add(10, 4711);
  procfs_.open(10, 3, "/dev/null", "pos: 0\n");
  procfs_.open(10, 4, kNode, kText);
  procfs_.open(10, 5, "socket:[1]", "");
  const Look found = look(10);
  EXPECT_EQ(found.outcome, LookOutcome::ok);
  EXPECT_EQ(found.start_ticks, 4711u);
  EXPECT_TRUE(found.holds_drm);
  ASSERT_EQ(found.clients.size(), 1u);
  EXPECT_EQ(found.clients[0].device, kCard);
  EXPECT_EQ(found.clients[0].id, 5u);
  EXPECT_EQ(found.clients[0].fd, 4);
  ASSERT_EQ(found.clients[0].engines.size(), 1u);
  EXPECT_EQ(found.clients[0].engines[0].count, 7u);
}

// A client hides behind descriptors that take longer to read than the scan may.
TEST_F(LookTest, SaysThatItHasNotReadAll) {
  procfs_.add(10);
  for (int fd = 3; fd < 1100; ++fd) procfs_.open(10, fd, "/dev/null", "pos: 0\n");
  class LateClock final : public Clock {
   public:
    Nanoseconds monotonic() const noexcept override { return std::chrono::seconds(is_first_++ == 0 ? 0 : 2); }
    Nanoseconds boottime() const noexcept override { return {}; }
    Nanoseconds realtime() const noexcept override { return {}; }

   private:
    mutable int is_first_ = 0;
  };
  const auto order = [&](Nanoseconds until) {
    return LookOrder{procfs_.procfs(), procfs_.sysfs(), {kCard}, std::make_shared<LateClock>(), until};
  };
  EXPECT_TRUE(look_at(order(std::chrono::seconds(1)), 10).is_cut);
  EXPECT_FALSE(look_at(order(std::chrono::seconds(3)), 10).is_cut);
}

TEST_F(LookTest, TwoDescriptorsOfAClientAreOne) {
  procfs_.add(10);
  procfs_.open(10, 4, kNode, kText);  // sysfs does not have the node: fdinfo names the device
  procfs_.open(10, 5, kNode, kText);
  procfs_.open(10, 6, kNode, "drm-driver: amdgpu\ndrm-pdev: 0000:03:00.0\ndrm-client-id: 6\n");
  EXPECT_EQ(look(10).clients.size(), 2u);
}

TEST_F(LookTest, ADeviceThatIsNotAskedForIsNotRead) {
  procfs_.node("renderD9128", "0000:04:00.0");
  procfs_.add(10);
  procfs_.open(10, 4, kNode, "drm-driver: xe\ndrm-pdev: 0000:03:00.0\ndrm-engine-: bad\n");
  const Look found = look(10);
  EXPECT_TRUE(found.holds_drm);
  EXPECT_TRUE(found.clients.empty());
  EXPECT_EQ(found.malformed, 0u);
}

TEST_F(LookTest, APlatformDeviceIsNamedBySysfs) {
  procfs_.node("renderD9129", "fde40000.npu");
  procfs_.add(10);
  procfs_.open(10, 4, "/dev/dri/renderD9129", "drm-driver: panthor\ndrm-client-id: 1\n");
  procfs_.open(10, 5, "/dev/dri/renderD9129", "pos: 0\n");  // no keys
  const Look found = look(10);
  ASSERT_EQ(found.clients.size(), 1u);
  EXPECT_EQ(found.clients[0].device, "fde40000.npu");
}

TEST_F(LookTest, MalformedLinesAreCounted) {
  procfs_.add(10);
  procfs_.open(10, 4, kNode, std::string(kText) + "drm-total-vram: 1 kB\ndrm-resident-vr");
  const Look found = look(10);
  EXPECT_EQ(found.malformed, 2u);
  EXPECT_EQ(found.clients.size(), 1u);
}

TEST_F(LookTest, ThreadsOfTheKernelZombiesAndNobody) {
  procfs_.add(2, 1, 'S', 0x00208040);  // kthreadd
  procfs_.add(10, 1, 'Z');
  EXPECT_EQ(look(2).outcome, LookOutcome::kernel);
  EXPECT_EQ(look(10).outcome, LookOutcome::ended);
  EXPECT_EQ(look(11).outcome, LookOutcome::ended);
}

TEST_F(LookTest, AfterTheBudgetNothingIsRead) {
  procfs_.add(10);
  const LookOrder order{procfs_.procfs(), procfs_.sysfs(), {kCard}, kClock, Nanoseconds{1}};
  EXPECT_EQ(look_at(order, 10).outcome, LookOutcome::skipped);
}

TEST(Look, TheKernelsOwnProcfs) {
  const Look found = look_at(
      {"/proc", "/sys", {kCard}, kClock, kRealClock.monotonic() + std::chrono::seconds(60)}, ::getpid());
  EXPECT_EQ(found.outcome, LookOutcome::ok);
  EXPECT_GT(found.start_ticks, 0u);
  EXPECT_TRUE(found.clients.empty());
}

TEST(Look, OneOpenFileIsItsDuplicate) {
  const Descriptor file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Descriptor other(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Descriptor duplicate(::dup(file.number()));
  const auto same = is_same_file(::getpid(), file.number(), ::getpid(), duplicate.number());
  if (!same) GTEST_SKIP() << "this kernel has no kcmp(2)";
  EXPECT_EQ(same, true);
  EXPECT_EQ(is_same_file(::getpid(), file.number(), ::getpid(), other.number()), false);
  EXPECT_EQ(is_same_file(::getpid(), file.number(), ::getpid(), 99999), std::nullopt);
}

using enum EngineClass;
using std::chrono::seconds;

Client client(std::uint64_t id, const std::string& keys, const std::string& device = kCard) {
  const std::string text = "drm-driver: " + keys;
  const Text parsed = parse(text);
  return {device, id, 3, engines_of(parsed), memory_of(parsed)};
}
Client gfx(std::uint64_t id, std::uint64_t busy_seconds) {
  return client(id, "amdgpu\ndrm-engine-gfx: " + std::to_string(busy_seconds) + "000000000 ns\n");
}

/// One device over several scans, 10 s apart.
class DeviceAccountTest : public testing::Test {
 protected:
  struct Given {
    int pid;
    std::vector<Client> clients;
    bool is_new = false;
    bool is_fresh = true;
    std::uint64_t start = 1;
  };
  DrmUse scan(std::vector<Given> given, bool has_read_all = true) {
    now_ += seconds(10);
    DeviceAccount::Holders holders;
    for (Given& each : given) {
      holders[each.pid] = {each.start, each.is_fresh ? now_ : now_ - seconds(10), each.is_fresh, each.is_new,
                           std::move(each.clients)};
    }
    account_.take(kCard, holders, now_, has_read_all);
    return account_.use(0);
  }
  static std::optional<double> of(const EngineSeconds& busy, EngineClass engine) {
    return busy[static_cast<std::size_t>(engine)];
  }

  DeviceAccount account_;
  Nanoseconds now_ = seconds(1000);
};

TEST_F(DeviceAccountTest, AClientCountsFromItsFirstReading) {
  DrmUse use = scan({{10, {gfx(1, 100)}}});
  EXPECT_EQ(of(use.busy_seconds, graphics), 0);
  EXPECT_EQ(of(use.busy_seconds, copy), std::nullopt);
  EXPECT_EQ(use.observed, seconds(0));
  use = scan({{10, {gfx(1, 104)}}});
  EXPECT_EQ(of(use.busy_seconds, graphics), 4);
  EXPECT_EQ(use.observed, seconds(10));
  EXPECT_EQ(use.scanned_at, seconds(1020));
  ASSERT_EQ(use.processes.size(), 1u);
  EXPECT_EQ(use.processes[0].pid, 10);
  EXPECT_EQ(use.processes[0].start_ticks, 1u);
  EXPECT_EQ(of(use.processes[0].busy_seconds, graphics), 4);
}

TEST_F(DeviceAccountTest, AClientOfANewProcessCountsFromZero) {
  scan({});
  const DrmUse use = scan({{10, {gfx(1, 3)}, true}, {20, {gfx(2, 100)}, false}});
  EXPECT_EQ(of(use.busy_seconds, graphics), 3);
}

TEST_F(DeviceAccountTest, AnEngineThatAKnownClientBeginsToUseCountsFromZero) {
  scan({{10, {gfx(1, 3)}}});
  const DrmUse use =
      scan({{10, {client(1, "amdgpu\ndrm-engine-gfx: 3000000000 ns\ndrm-engine-dma: 2000000000 ns\n")}}});
  EXPECT_EQ(of(use.busy_seconds, copy), 2);
}

TEST_F(DeviceAccountTest, TheTotalNeverFalls) {
  scan({{10, {gfx(1, 100)}}, {20, {gfx(2, 50)}}});
  EXPECT_EQ(of(scan({{10, {gfx(1, 105)}}, {20, {gfx(2, 52)}}}).busy_seconds, graphics), 7);
  EXPECT_EQ(of(scan({{20, {gfx(2, 51)}}}).busy_seconds, graphics), 7);  // one has gone, the other went back
  EXPECT_EQ(of(scan({{20, {gfx(2, 53)}}}).busy_seconds, graphics), 8);  // its highest count was 52
  EXPECT_EQ(of(scan({}).busy_seconds, graphics), 8);
}

TEST_F(DeviceAccountTest, AClientOfSeveralProcessesCountsOnceForTheLowest) {
  const std::string memory = "amdgpu\ndrm-resident-vram: 4 KiB\n";
  scan({{10, {gfx(1, 0)}}, {20, {gfx(1, 0)}}, {30, {gfx(3, 0)}}});
  DrmUse use =
      scan({{10, {gfx(1, 4), client(9, memory)}}, {20, {gfx(1, 4), client(9, memory)}}, {30, {gfx(3, 1)}}});
  EXPECT_EQ(of(use.busy_seconds, graphics), 5);
  ASSERT_EQ(use.processes.size(), 2u);
  EXPECT_EQ(use.processes[0].pid, 10);
  EXPECT_EQ(use.processes[0].device_bytes, 4096);
  EXPECT_EQ(use.processes[1].pid, 30);
  use = scan({{20, {gfx(1, 6)}}, {30, {gfx(3, 1)}}});  // the other holder goes on
  EXPECT_EQ(of(use.busy_seconds, graphics), 7);
  EXPECT_EQ(use.processes[0].pid, 20);
  EXPECT_EQ(of(use.processes[0].busy_seconds, graphics), 2);
}

TEST_F(DeviceAccountTest, AnotherProcessWithTheNumberStartsAnew) {
  scan({{10, {gfx(1, 0)}}});
  EXPECT_EQ(of(scan({{10, {gfx(1, 4)}}}).processes[0].busy_seconds, graphics), 4);
  const DrmUse use = scan({{10, {gfx(2, 3)}, true, true, 77}});
  EXPECT_EQ(use.processes[0].start_ticks, 77u);
  EXPECT_EQ(of(use.processes[0].busy_seconds, graphics), 3);
  EXPECT_EQ(of(use.busy_seconds, graphics), 7);
}

TEST_F(DeviceAccountTest, ClientsOfAnotherDeviceDoNotCount) {
  const DrmUse use = scan({{10, {client(1, "amdgpu\ndrm-resident-vram: 5\n", "0000:04:00.0")}}});
  EXPECT_TRUE(use.processes.empty());
}

TEST_F(DeviceAccountTest, TheCapacityDividesAndTheBusiestNameOfAClassCounts) {
  const auto video = [](int two) {
    return client(
        1, "i915\ndrm-engine-video: " + std::to_string(two) + "000000000 ns\ndrm-engine-capacity-video: 2\n");
  };
  scan({{10, {video(0)}}});
  EXPECT_EQ(of(scan({{10, {video(6)}}}).busy_seconds, EngineClass::video), 3);
  const auto mali = [](int fragment, int tiler) {
    return client(2, "panfrost\ndrm-engine-fragment: " + std::to_string(fragment) +
                         "000000000 ns\ndrm-engine-vertex-tiler: " + std::to_string(tiler) +
                         "000000000 ns\n");
  };
  scan({{10, {mali(0, 0)}}});
  EXPECT_EQ(of(scan({{10, {mali(5, 2)}}}).busy_seconds, graphics), 5);
  EXPECT_EQ(of(scan({{10, {mali(5, 5)}}}).busy_seconds, graphics), 8);
}

Client cycles(std::uint64_t id, std::uint64_t busy, std::uint64_t total, int capacity = 1) {
  return client(id, "xe\ndrm-cycles-ccs: " + std::to_string(busy) +
                        "\ndrm-total-cycles-ccs: " + std::to_string(total) +
                        "\ndrm-engine-capacity-ccs: " + std::to_string(capacity) + "\n");
}

TEST_F(DeviceAccountTest, CyclesAreTimedByTheClockOnce) {
  scan({{10, {cycles(1, 0, 1000)}}, {20, {cycles(2, 0, 1000)}}});
  // The clock advances by 500 in 10 s for both; the clients use 100 and 150 of them.
  DrmUse use = scan({{10, {cycles(1, 100, 1500)}}, {20, {cycles(2, 150, 1500)}}});
  EXPECT_DOUBLE_EQ(*of(use.busy_seconds, compute), 5);
  use = scan({{10, {cycles(1, 200, 2000, 2)}}});  // now of two engines
  EXPECT_DOUBLE_EQ(*of(use.busy_seconds, compute), 6);
  // A client of a new process, by the clock that is known.
  use = scan({{10, {cycles(1, 200, 2500)}}, {30, {cycles(3, 50, 2500)}, true}});
  EXPECT_DOUBLE_EQ(*of(use.busy_seconds, compute), 7);
}

TEST_F(DeviceAccountTest, AClockThatDoesNotRunTimesNothing) {
  scan({{10, {cycles(1, 5, 0)}}});
  EXPECT_EQ(of(scan({{10, {cycles(1, 9, 0)}}}).busy_seconds, compute), std::nullopt);
  scan({{10, {cycles(2, 5, 100)}}});
  EXPECT_EQ(of(scan({{10, {cycles(2, 9, 100)}}}).busy_seconds, compute), 0);  // its clock stood still
}

TEST_F(DeviceAccountTest, AHolderThatWasNotReachedKeepsItsMemoryAndCountsLater) {
  const auto both = [](int busy) {
    return client(1,
                  "amdgpu\ndrm-engine-gfx: " + std::to_string(busy) + "000000000 ns\ndrm-resident-vram: 7\n");
  };
  scan({{10, {both(0)}}});
  DrmUse use = scan({{10, {both(0)}, false, false}}, false);
  EXPECT_EQ(use.observed, seconds(0));
  EXPECT_EQ(use.processes[0].device_bytes, 7);
  use = scan({{10, {both(15)}}});
  EXPECT_EQ(use.observed, seconds(20));
  EXPECT_EQ(of(use.busy_seconds, graphics), 15);
}

TEST_F(DeviceAccountTest, AfterAnInterruptionClientsCountFromTheirNextReading) {
  scan({{10, {gfx(1, 0)}}});
  scan({{10, {gfx(1, 2)}}});
  account_.interrupt();
  DrmUse use = scan({{10, {gfx(1, 500)}}});
  EXPECT_EQ(of(use.busy_seconds, graphics), 2);
  EXPECT_EQ(use.observed, seconds(10));
  use = scan({{10, {gfx(1, 501)}}});
  EXPECT_EQ(of(use.busy_seconds, graphics), 3);
  EXPECT_EQ(use.observed, seconds(20));
}

using std::chrono::minutes;
using std::chrono::seconds;

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
