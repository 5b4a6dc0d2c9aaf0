#include "collectors/tree/clients.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_drm_users.hpp"

namespace gpumeter::tree {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

EngineSeconds busy(double graphics, double compute) {
  EngineSeconds seconds_by_class;
  seconds_by_class[static_cast<std::size_t>(EngineClass::graphics)] = graphics;
  seconds_by_class[static_cast<std::size_t>(EngineClass::compute)] = compute;
  return seconds_by_class;
}

class ClientsTest : public testing::Test {
 protected:
  ClientsTest() { clients_.open(users_, "fec00000.v3d"); }

  void scan(int at, const EngineSeconds& total, std::vector<DrmProcess> processes = {}) {
    users_->uses["fec00000.v3d"] =
        std::make_shared<DrmUse>(DrmUse{seconds(at), seconds(at), total, std::move(processes), 0});
    clients_.begin_pass();
  }
  std::vector<DeviceProcess> listed() {
    std::vector<DeviceProcess> out;
    EXPECT_EQ(clients_.processes(out), ReadStatus::ok);
    return out;
  }

  std::shared_ptr<FakeDrmUsers> users_ = std::make_shared<FakeDrmUsers>();
  Clients clients_;
};

TEST_F(ClientsTest, NothingIsKnownBeforeTheFirstScan) {
  clients_.begin_pass();
  std::vector<DeviceProcess> out;
  EXPECT_EQ(clients_.processes(out), ReadStatus::unsupported);
  EXPECT_EQ(clients_.busy_seconds(), std::nullopt);
  EXPECT_EQ(clients_.engine_seconds(EngineClass::graphics), std::nullopt);
  EXPECT_TRUE(users_->watches.contains("fec00000.v3d"));
}

TEST_F(ClientsTest, BusyIsTheBusiestClassOfEachScan) {
  scan(10, busy(1, 3));
  EXPECT_EQ(clients_.busy_seconds(), 3);
  EXPECT_EQ(clients_.utilization(), std::nullopt);
  scan(20, busy(5, 4));  // 4 s of graphics, 1 s of compute in 10 s
  EXPECT_EQ(clients_.busy_seconds(), 7);
  EXPECT_EQ(clients_.utilization(), 0.4);
  EXPECT_EQ(clients_.engine_seconds(EngineClass::graphics), 5);
  EXPECT_EQ(clients_.engine_seconds(EngineClass::copy), std::nullopt);
  clients_.begin_pass();  // the same scan again
  EXPECT_EQ(clients_.busy_seconds(), 7);
  scan(30, busy(100, 4));  // more than the time
  EXPECT_EQ(clients_.utilization(), 1);
}

TEST_F(ClientsTest, ADeviceWithoutBusyTimesHasNone) {
  scan(10, {});
  scan(20, {});
  EXPECT_EQ(clients_.busy_seconds(), std::nullopt);
  EXPECT_EQ(clients_.utilization(), std::nullopt);
}

TEST_F(ClientsTest, ProcessesHaveTheTimeSinceTheLastScan) {
  scan(10, busy(1, 0), {{7, 70, busy(1, 0), std::nullopt, 4096.0}});
  EXPECT_THAT(listed(), ElementsAre(DeviceProcess{7, 4096.0, 0.0}));
  scan(20, busy(4, 0), {{7, 70, busy(4, 0), 1024.0, 4096.0}, {8, 80, {}, std::nullopt, 512.0}});
  EXPECT_THAT(listed(), ElementsAre(DeviceProcess{7, 1024.0, 3.0}, DeviceProcess{8, 512.0, std::nullopt}));
  EXPECT_THAT(listed(), ElementsAre(DeviceProcess{7, 1024.0, 0.0}, DeviceProcess{8, 512.0, std::nullopt}));
  scan(30, busy(9, 0), {{7, 71, busy(5, 0), 1024.0, std::nullopt}});  // another process with this pid
  EXPECT_THAT(listed(), ElementsAre(DeviceProcess{7, 1024.0, 0.0}));
}

// The device was busy for as long as its only process.
TEST_F(ClientsTest, ProcessesSumToTheDevice) {
  double sum = 0;
  for (int at = 10; at <= 50; at += 10) {
    const double used = 0.3 * at;
    scan(at, busy(used, 0),
         {{7, 70, busy(used / 2, 0), std::nullopt, 1.0}, {8, 80, busy(used / 2, 0), std::nullopt, 1.0}});
    for (const DeviceProcess& process : listed()) sum += *process.busy_seconds;
  }
  EXPECT_NEAR(sum, *clients_.busy_seconds() - 0.3 * 10, 1e-9);  // all but the first scan
}

}  // namespace
}  // namespace gpumeter::tree
