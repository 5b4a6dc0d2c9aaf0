#include "collectors/sources/fdinfo/watch.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/fake_drm_users.hpp"

namespace gpumeter::fdinfo {
namespace {

using enum EngineClass;
using std::chrono::seconds;

constexpr const char* kDevice = "0000:03:00.0";

class BusyCountersTest : public testing::Test {
 protected:
  void scan(seconds now, EngineSeconds busy) {
    DrmUse use;
    use.scanned_at = now;
    use.observed = now - seconds(10);
    use.busy_seconds = busy;
    users_->scan(kDevice, std::move(use));
    counters_.begin_pass(watch_, now);
  }
  void expect(Sample sample, double value) {
    EXPECT_EQ(sample.status, ReadStatus::ok);
    EXPECT_DOUBLE_EQ(sample.value, value);
  }

  const std::shared_ptr<FakeDrmUsers> users_ = std::make_shared<FakeDrmUsers>();
  const DeviceWatch watch_{users_, kDevice};
  BusyCounters counters_;
};

TEST_F(BusyCountersTest, EnginesAndTheBusiestOfThem) {
  scan(seconds(10), engine_seconds({{graphics, 4}}));
  expect(counters_.engine(graphics), 4);
  EXPECT_EQ(counters_.engine(copy).status, ReadStatus::unsupported);
  expect(counters_.busiest(), 0);
  EXPECT_EQ(counters_.utilization().status, ReadStatus::unsupported);
  EXPECT_EQ(counters_.utilization(graphics).status, ReadStatus::unsupported);

  scan(seconds(20), engine_seconds({{graphics, 5}, {copy, 2.5}}));
  expect(counters_.engine(graphics), 5);
  expect(counters_.engine(copy), 2.5);
  expect(counters_.busiest(), 2.5);
  expect(counters_.utilization(), 0.25);
  expect(counters_.utilization(graphics), 0.1);
  expect(counters_.utilization(copy), 0.25);
  EXPECT_EQ(counters_.utilization(video).status, ReadStatus::unsupported);

  counters_.begin_pass(watch_, seconds(21));  // the same scan
  expect(counters_.busiest(), 2.5);
  expect(counters_.utilization(), 0.25);

  scan(seconds(30), engine_seconds({{graphics, 9}, {copy, 2.5}}));
  expect(counters_.busiest(), 6.5);
  expect(counters_.utilization(), 0.4);

  scan(seconds(40), engine_seconds({{graphics, 29}, {copy, 2.5}}));  // several rings at once
  expect(counters_.busiest(), 26.5);
  expect(counters_.utilization(), 1);
}

TEST_F(BusyCountersTest, NoScanAndALateScanHaveNoValue) {
  counters_.begin_pass(watch_, seconds(5));
  EXPECT_EQ(counters_.busiest().status, ReadStatus::unsupported);
  scan(seconds(10), engine_seconds({{graphics, 4}}));
  counters_.begin_pass(watch_, seconds(41));
  EXPECT_EQ(counters_.engine(graphics).status, ReadStatus::timeout);
  EXPECT_EQ(counters_.busiest().status, ReadStatus::timeout);
  EXPECT_EQ(counters_.utilization().status, ReadStatus::timeout);
  EXPECT_EQ(counters_.utilization(graphics).status, ReadStatus::timeout);
  scan(seconds(50), engine_seconds({{graphics, 8}}));  // the work of the gap is in the next scan
  expect(counters_.busiest(), 4);
  expect(counters_.utilization(), 0.1);
}

TEST_F(BusyCountersTest, WithoutEnginesTheBusyTimeIsUnknown) {
  scan(seconds(10), {});
  scan(seconds(20), {});
  EXPECT_EQ(counters_.busiest().status, ReadStatus::unsupported);
  EXPECT_EQ(counters_.utilization().status, ReadStatus::unsupported);
  scan(seconds(30), engine_seconds({{compute, 1}}));
  expect(counters_.busiest(), 1);
  expect(counters_.utilization(), 0.1);
}

using enum EngineClass;
using std::chrono::seconds;
using Processes = std::vector<DeviceProcess>;

DrmUse use_at(seconds now, std::vector<DrmProcess> processes) {
  DrmUse use;
  use.scanned_at = now;
  use.processes = std::move(processes);
  return use;
}

class ProcessListsTest : public testing::Test {
 protected:
  Processes listed(seconds now, std::optional<double> used = {}) {
    Processes list;
    EXPECT_EQ(lists_.read(watch_, now, used, list), ReadStatus::ok);
    return list;
  }

  const std::shared_ptr<FakeDrmUsers> users_ = std::make_shared<FakeDrmUsers>();
  const DeviceWatch watch_{users_, kDevice};
  ProcessLists lists_;
};

TEST_F(ProcessListsTest, BusyIsTheBusiestClassSinceTheLastScan) {
  users_->scan(kDevice, use_at(seconds(10), {{10, 1, engine_seconds({{graphics, 100}, {copy, 7}}), 4096}}));
  EXPECT_EQ(listed(seconds(11)), (Processes{{10, 4096, 0}}));
  users_->scan(kDevice, use_at(seconds(20), {{10, 1, engine_seconds({{graphics, 101}, {copy, 9.5}}), 4096},
                                             {20, 5, engine_seconds({{video, 0.5}}), {}}}));
  EXPECT_EQ(listed(seconds(21)), (Processes{{10, 4096, 2.5}, {20, {}, 0.5}}));
  EXPECT_EQ(listed(seconds(22)), (Processes{{10, 4096, 0}, {20, {}, 0}}));  // no new scan
}

TEST_F(ProcessListsTest, BusyIsAtMostTheTimeBetweenTheScans) {
  users_->scan(kDevice, use_at(seconds(10), {}));
  EXPECT_EQ(listed(seconds(10)), Processes());
  users_->scan(kDevice, use_at(seconds(15), {{10, 1, engine_seconds({{compute, 40}}), {}}}));
  EXPECT_EQ(listed(seconds(15)), (Processes{{10, {}, 5}}));
}

TEST_F(ProcessListsTest, AnotherProcessWithTheNumberStartsAnew) {
  users_->scan(kDevice, use_at(seconds(10), {{10, 1, engine_seconds({{compute, 3}}), {}}}));
  listed(seconds(10));
  users_->scan(kDevice, use_at(seconds(20), {{10, 2, engine_seconds({{compute, 4}}), {}}}));
  EXPECT_EQ(listed(seconds(20)), (Processes{{10, {}, 4}}));
}

TEST_F(ProcessListsTest, AProcessWithoutEngineKeysHasNoBusyTime) {
  users_->scan(kDevice, use_at(seconds(10), {{10, 1, {}, 1.0}}));
  EXPECT_EQ(listed(seconds(10)), (Processes{{10, 1.0, {}}}));
}

TEST_F(ProcessListsTest, SystemMemoryCountsOnlyOnDevicesThatWorkInIt) {
  users_->scan(kDevice, use_at(seconds(10), {{10, 1, {}, 100.0, 25.0}, {20, 1, {}, 0.0, 7.0}}));
  EXPECT_EQ(listed(seconds(10)), (Processes{{10, 100.0, {}}, {20, 0.0, {}}}));
  lists_ = ProcessLists(MemoryKind::all);
  EXPECT_EQ(listed(seconds(10)), (Processes{{10, 125.0, {}}, {20, 7.0, {}}}));
}

TEST_F(ProcessListsTest, SystemMemoryCountsWithoutMemoryOfTheDevice) {
  users_->scan(kDevice, use_at(seconds(10), {{10, 1, {}, {}, 60.0, 0, 60}, {20, 1, {}, {}, 40.0}}));
  EXPECT_EQ(listed(seconds(10)), (Processes{{10, 60.0, {}}, {20, 40.0, {}}}));
  EXPECT_EQ(listed(seconds(10), 70), (Processes{{10, 30.0, {}}, {20, 40.0, {}}}));
}

TEST_F(ProcessListsTest, AnExcessIsTakenFromTheSharedParts) {
  users_->scan(kDevice,
               use_at(seconds(10),
                      {{10, 1, {}, 1000.0, {}, 0}, {20, 1, {}, 60.0, {}, 60}, {30, 1, {}, 40.0, {}, 20}}));
  EXPECT_EQ(listed(seconds(10)), (Processes{{10, 1000.0, {}}, {20, 60.0, {}}, {30, 40.0, {}}}));
  EXPECT_EQ(listed(seconds(10), 1100), (Processes{{10, 1000.0, {}}, {20, 60.0, {}}, {30, 40.0, {}}}));
  EXPECT_EQ(listed(seconds(10), 1060), (Processes{{10, 1000.0, {}}, {20, 30.0, {}}, {30, 30.0, {}}}));
  EXPECT_EQ(listed(seconds(10), 510), (Processes{{10, 500.0, {}}, {20, 0.0, {}}, {30, 10.0, {}}}));
  EXPECT_EQ(listed(seconds(10), 0), (Processes{{10, 0.0, {}}, {20, 0.0, {}}, {30, 0.0, {}}}));
}

TEST_F(ProcessListsTest, AProcessOfAnotherListKeepsTheLargerNumbers) {
  users_->scan(kDevice, use_at(seconds(10), {}));
  listed(seconds(10));
  users_->scan(kDevice, use_at(seconds(20), {{10, 1, engine_seconds({{compute, 3}}), 100.0},
                                             {20, 1, {}, 5.0, {}, 4},
                                             {30, 1, engine_seconds({{copy, 1}}), 70.0}}));
  Processes list = {{10, 900.0, {}}, {20, {}, 2.0}, {40, 8.0, 1.0}};
  EXPECT_EQ(lists_.read(watch_, seconds(20), 981, list), ReadStatus::ok);
  EXPECT_EQ(list, (Processes{{10, 900.0, 3.0}, {20, 3.0, 2.0}, {40, 8.0, 1.0}, {30, 70.0, 1.0}}));
}

TEST_F(ProcessListsTest, NoScanIsNotAnEmptyList) {
  Processes list;
  EXPECT_EQ(lists_.read(watch_, seconds(1), {}, list), ReadStatus::unsupported);
  EXPECT_EQ(lists_.read({}, seconds(1), {}, list), ReadStatus::unsupported);
  users_->scan(kDevice, use_at(seconds(10), {{10, 1, {}, 1.0}}));
  EXPECT_EQ(lists_.read(watch_, seconds(41), {}, list), ReadStatus::timeout);
  EXPECT_EQ(list, Processes());
}

TEST_F(ProcessListsTest, AWatchLastsAsLongAsItIsOn) {
  EXPECT_EQ(users_->watches[kDevice], 1);
  {
    DeviceWatch other(users_, kDevice, false);
    EXPECT_EQ(users_->watches[kDevice], 1);
    other.turn_on(true);
    EXPECT_EQ(users_->watches[kDevice], 2);
    other.turn_on(false);
    EXPECT_EQ(users_->watches[kDevice], 1);
    other.turn_on(true);
    other.turn_on(true);
    EXPECT_EQ(users_->watches[kDevice], 2);
  }
  EXPECT_EQ(users_->watches[kDevice], 1);
}

}  // namespace
}  // namespace gpumeter::fdinfo
