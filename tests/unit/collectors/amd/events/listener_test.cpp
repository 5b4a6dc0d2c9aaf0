#include "collectors/amd/events/listener.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/requirements.hpp"
#include "tests/fakes/smi_pipes.hpp"

namespace gpumeter::amd {
namespace {

class EventListenerTest : public testing::Test {
 protected:
  EventListenerTest() {
    auto pipes = std::make_unique<SmiPipes>();
    pipes_ = pipes.get();
    listener_ = std::make_unique<EventListener>(std::move(pipes), clock_);
  }
  std::vector<std::string> wait() {
    std::vector<std::string> kinds;
    for (const DeviceEvent& event : listener_->wait(Nanoseconds{0}))
      kinds.push_back(event.uuid + " " + event.kind);
    return kinds;
  }

  FakeClock clock_;
  SmiPipes* pipes_;
  std::unique_ptr<EventListener> listener_;
};

TEST_F(EventListenerTest, CountsTheEventsOfEachCard) {
  const auto first = listener_->listen("GPU-1", {11});
  const auto second = listener_->listen("GPU-2", {21, 22});
  EXPECT_FALSE(first->is_reported());
  EXPECT_TRUE(wait().empty());
  EXPECT_TRUE(first->is_reported());
  pipes_->write(11, "3 1 hang\n4 1\n");
  pipes_->write(22, "1 4d2:python3\n");
  EXPECT_EQ(wait(), (std::vector<std::string>{"GPU-1 reset", "GPU-1 reset_done", "GPU-2 vm_fault"}));
  EXPECT_EQ(first->count_of(2), 1U);
  EXPECT_EQ(first->count_of(3), 1U);
  EXPECT_EQ(second->count_of(0), 1U);
}

TEST_F(EventListenerTest, OnlyTheFirstNodeReportsWhatConcernsTheWholeCard) {
  listener_->listen("GPU-2", {21, 22});
  wait();
  EXPECT_EQ(pipes_->masks, (std::map<std::uint32_t, std::uint64_t>{{21, 0b1111}, {22, 0b1}}));
}

TEST_F(EventListenerTest, ARefusalIsReportedOnceAndRetried) {
  pipes_->refuses = true;
  const auto events = listener_->listen("GPU-1", {11});
  EXPECT_EQ(wait(),
            (std::vector<std::string>{"GPU-1 no events, opening is retried: /dev/kfd: Permission denied"}));
  clock_.advance(std::chrono::seconds(6));
  EXPECT_TRUE(wait().empty());
  pipes_->refuses = false;
  EXPECT_TRUE(wait().empty());
  EXPECT_FALSE(events->is_reported());
  clock_.advance(std::chrono::seconds(6));
  EXPECT_TRUE(wait().empty());
  EXPECT_TRUE(events->is_reported());
}

TEST_F(EventListenerTest, AStreamThatEndsIsOpenedAgainAndTheCountContinues) {
  const auto events = listener_->listen("GPU-1", {11});
  wait();
  pipes_->write(11, "3 1\n");
  pipes_->writers.clear();
  EXPECT_EQ(wait(), std::vector<std::string>{"GPU-1 reset"});
  EXPECT_FALSE(events->is_reported());
  clock_.advance(std::chrono::seconds(6));
  wait();
  EXPECT_TRUE(events->is_reported());
  EXPECT_EQ(events->count_of(2), 1U);
}

TEST_F(EventListenerTest, AForgottenCardIsClosedAndContinuesLater) {
  const auto events = listener_->listen("GPU-1", {11});
  wait();
  listener_->forget("GPU-1");
  wait();
  EXPECT_FALSE(events->is_reported());
  EXPECT_EQ(::write(pipes_->writers.at(11).number(), "", 0), 0);
  EXPECT_EQ(listener_->listen("GPU-1", {11}), events);
  wait();
  EXPECT_TRUE(events->is_reported());
}

TEST(KfdDeviceTest, AMissingNodeIsAnErrorWithItsReason) {
  KfdDevice device("/nonexistent/kfd");
  const auto opened = device.open_stream(1, 1);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message(), "/nonexistent/kfd: No such file or directory");
}

TEST(KfdDeviceTest, ANodeOfAnotherKindIsAnError) {
  if (const auto reason = no_unknown_requests(); !reason.empty()) GTEST_SKIP() << reason;
  KfdDevice device("/dev/null");
  const auto opened = device.open_stream(1, 1);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message(), "/dev/null, AMDKFD_IOC_SMI_EVENTS: Inappropriate ioctl for device");
}

}  // namespace
}  // namespace gpumeter::amd
