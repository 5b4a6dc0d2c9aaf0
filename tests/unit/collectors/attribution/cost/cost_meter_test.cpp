#include "collectors/attribution/cost/cost_meter.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/fakes/fake_procfs.hpp"

namespace gpumeter::workloads {
namespace {

using namespace std::chrono_literals;

const WorkloadId kUnit{cgroup::Kind::systemd_unit, "a.service"};

class CostMeterTest : public testing::Test {
 protected:
  CostMeterTest() { procfs_.add(7, "/system.slice/a.service"); }

  void look(Nanoseconds now, const std::vector<DeviceProcess>& listed, const DeviceReadings& readings = {}) {
    meter_.update(now, listed);
    costs_.look(now, meter_, readings);
  }
  DeviceCost cost() const {
    const auto account = costs_.account("GPU-1", 3, meter_, {});
    for (const AccountEntry& entry : account->entries) {
      if (entry.id == kUnit) return entry.cost;
    }
    return {};
  }

  FakeProcfs procfs_;
  std::shared_ptr<WorkloadBook> book_ = std::make_shared<WorkloadBook>();
  DeviceMeter meter_{procfs_.path(), false, book_};
  CostMeter costs_;
};

TEST_F(CostMeterTest, TimeHeldBusyAndIdle) {
  look(0s, {});
  look(10s, {{7, 100, 4}});
  EXPECT_EQ(cost().held_seconds, 4) << "a new process held the device for as long as it was busy";
  look(20s, {{7, 300, 2}});
  look(30s, {{7, 200, 0}});
  look(40s, {});
  EXPECT_EQ(cost().held_seconds, 34);
  EXPECT_EQ(cost().busy_seconds, 6);
  EXPECT_EQ(cost().idle_seconds, 25.5)
      << "8 and 10 of 24 s; in the last interval as before, because it is not known";
  EXPECT_EQ(cost().peak_memory, 300);
  EXPECT_EQ(cost().uuid, "GPU-1");
  EXPECT_EQ(cost().index, 3U);
}

TEST_F(CostMeterTest, TheDevicesBusyTimeCountsForTheOnlyUser) {
  look(0s, {{7}}, {.busy_seconds = 100});
  look(10s, {{7}}, {.busy_seconds = 103});
  EXPECT_EQ(cost().busy_seconds, 3);
  EXPECT_EQ(cost().idle_seconds, 7);
  procfs_.add(8, "/system.slice/b.service");
  look(20s, {{7}, {8}}, {.busy_seconds = 113});
  EXPECT_EQ(cost().busy_seconds, 3) << "which of the two was busy is not known";
}

TEST_F(CostMeterTest, ThrottledTimeCountsWhileADeviceIsHeld) {
  look(0s, {});
  costs_.pass(meter_, {.throttled = {{"power", 50}}});
  look(1s, {{7}});
  costs_.pass(meter_, {.throttled = {{"power", 53}}});
  look(2s, {});
  costs_.pass(meter_, {.throttled = {{"power", 60}}});
  EXPECT_EQ(cost().throttled_seconds, (std::map<std::string, double>{{"power", 3}}));
}

TEST_F(CostMeterTest, AGapIsNotCounted) {
  look(0s, {{7, {}, 0}});
  costs_.interrupt();
  meter_.interrupt();
  look(100s, {{7, {}, 0}});
  look(101s, {{7, {}, 0}});
  EXPECT_EQ(cost().held_seconds, 1);
}

TEST_F(CostMeterTest, ContinuesAnEarlierProcess) {
  look(0s, {{7, 100, 0}});
  look(5s, {{7, 400, 0}});
  look(10s, {{7, 100, 5}});
  const auto account = costs_.account("GPU-1", 3, meter_, {});
  DeviceMeter meter(procfs_.path(), false, book_);
  DeviceAccount earlier = *account;
  earlier.energy_total = 500;
  meter.resume(earlier);
  CostMeter costs;
  costs.resume(*account);
  meter.add_energy(800);
  EXPECT_EQ(meter.workloads().at(kUnit).energy_joules, 300) << "it held the device before the restart";
  const std::vector<DeviceProcess> listed = {{7, 100, 2}};
  meter.update(20s, listed);
  costs.look(20s, meter, {});
  EXPECT_EQ(meter.workloads().at(kUnit).busy_seconds, 7);
  const auto again = costs.account("GPU-1", 3, meter, {});
  const auto is_unit = [](const AccountEntry& entry) { return entry.id == kUnit; };
  const auto found = std::ranges::find_if(again->entries, is_unit);
  ASSERT_NE(found, again->entries.end());
  EXPECT_EQ(found->cost.busy_seconds, 7);
  EXPECT_EQ(found->cost.peak_memory, 400);
}

}  // namespace
}  // namespace gpumeter::workloads
