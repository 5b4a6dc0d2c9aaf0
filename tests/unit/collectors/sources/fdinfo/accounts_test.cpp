#include "collectors/sources/fdinfo/accounts.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/fake_drm_users.hpp"

namespace gpumeter::fdinfo {
namespace {

using enum EngineClass;
using std::chrono::seconds;

constexpr const char* kCard = "0000:03:00.0";

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

}  // namespace
}  // namespace gpumeter::fdinfo
