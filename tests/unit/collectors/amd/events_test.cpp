#include "collectors/amd/events.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectors/amd/card.hpp"
#include "tests/fakes/amd_card.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/requirements.hpp"
#include "tests/fakes/sampled_page.hpp"
#include "tests/fakes/smi_pipes.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::amd {
namespace {

std::vector<std::string> names(std::initializer_list<std::string_view> reads) {
  SmiStream stream;
  std::vector<std::string> found;
  for (const std::string_view bytes : reads)
    stream.add(bytes, [&](std::size_t place) { found.emplace_back(kEvents[place].name); });
  return found;
}

// The lines of kernel 6.12, linux/kfd_ioctl.h, KFD_EVENT_FMT_*.
TEST(SmiStream, EachLineIsAnEvent) {
  EXPECT_EQ(names({"3 1f ring gfx timeout\n4 1f\n1 4d2:python3\n2 8:5\n"}),
            (std::vector<std::string>{"reset", "reset_done", "vm_fault", "thermal_throttle"}));
}

TEST(SmiStream, ALineMayArriveInParts) {
  EXPECT_EQ(names({"3 1", "f\n4", " 1f\n"}), (std::vector<std::string>{"reset", "reset_done"}));
  EXPECT_TRUE(names({"3 1f"}).empty());
}

TEST(SmiStream, OtherEventsAndGarbageAreSkipped) {
  EXPECT_TRUE(names({"c 1\n", "5 1 -2 @3\n", "\n", "x\n", "0 1\n", "100000003 1\n"}).empty());
}

TEST(SmiStream, OfALongLineTheBeginningCounts) {
  EXPECT_EQ(names({"1 " + std::string(5000, 'a'), "\n3 1\n"}),
            (std::vector<std::string>{"vm_fault", "reset"}));
}

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

const std::string kCard = "bus/pci/devices/0000:0c:00.0";

/// A card with a node of the compute driver.
class EventReadersTest : public testing::Test {
 protected:
  EventReadersTest() {
    tree_.write(kCard + "/uevent", "DRIVER=amdgpu\nPCI_CLASS=120000\nPCI_ID=1002:74A1\n");
    const std::string node = "class/kfd/kfd/topology/nodes/1/";
    tree_.write(node + "properties", "simd_count 4\nsimd_per_cu 4\nlocation_id 3072\ndevice_id 29857\n");
    tree_.write(node + "gpu_id", "77\n");
  }

  void attach(AmdOptions options) {
    info_.uuid = "GPU-1";
    info_.source = tree_ / kCard;
    page_ = std::make_unique<SampledPage>(amd_device({tree_.path(), "/proc"}, options));
    page_->attach(info_);
    page_->pass_all();
  }

  const Tree tree_{{}};
  DeviceInfo info_;
  std::unique_ptr<SampledPage> page_;
};

TEST_F(EventReadersTest, EachLinkOnRequest) {
  FakeBlob blob(1, 8);
  for (std::size_t i = 0; i < 3; ++i) {
    blob.set("xgmi_read_data_acc", i + 1, i).set("xgmi_write_data_acc", 10 * (i + 1), i);
    blob.set("xgmi_link_status", i, i);  // down, up, not present
  }
  tree_.write(kCard + "/gpu_metrics", blob.bytes());
  attach({});
  EXPECT_EQ(page_->text().find("gpu_link_"), std::string::npos);
  attach({true});
  const std::string text = page_->text();
  for (const char* const line :
       {"gpu_link_received_bytes_total{kind=\"xgmi\",link=\"0\"} 1024\n",
        "gpu_link_received_bytes_total{kind=\"xgmi\",link=\"2\"} 3072\n",
        "gpu_link_transmitted_bytes_total{kind=\"xgmi\",link=\"1\"} 20480\n",
        "gpu_link_up{kind=\"xgmi\",link=\"0\"} 0\n", "gpu_link_up{kind=\"xgmi\",link=\"1\"} 1\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  EXPECT_EQ(text.find("gpu_link_up{kind=\"xgmi\",link=\"2\"}"), std::string::npos) << text;
  EXPECT_EQ(text.find("link=\"3\""), std::string::npos) << text;
}

TEST_F(EventReadersTest, EventsAreThereWhileTheDriverReportsThem) {
  const FakeClock clock;
  auto pipes = std::make_unique<SmiPipes>();
  SmiPipes& driver = *pipes;
  const auto listener = std::make_shared<EventListener>(std::move(pipes), clock);
  attach({false, listener});
  EXPECT_EQ(page_->text(), "");
  listener->wait(Nanoseconds{0});
  driver.write(77, "3 1 hang\n");
  listener->wait(Nanoseconds{0});
  page_->pass(Tier::fast, std::chrono::seconds(1));
  EXPECT_EQ(page_->text(),
            "gpu_events_total{event=\"reset\"} 1\n"
            "gpu_events_total{event=\"reset_done\"} 0\n"
            "gpu_events_total{event=\"thermal_throttle\"} 0\n"
            "gpu_events_total{event=\"vm_fault\"} 0\n");
  page_.reset();
}

TEST_F(EventReadersTest, WithoutTheOptionThereAreNone) {
  attach({});
  EXPECT_EQ(page_->text(), "");
}

}  // namespace
}  // namespace gpumeter::amd
