#include "collectors/sources/fdinfo/busy_counters.hpp"

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

}  // namespace
}  // namespace gpumeter::fdinfo
