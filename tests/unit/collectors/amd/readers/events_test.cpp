#include "collectors/amd/readers/events.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "collectors/amd/metrics.hpp"
#include "collectors/table/device.hpp"
#include "tests/fakes/amd_card.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/sampled_page.hpp"
#include "tests/fakes/smi_pipes.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::amd {
namespace {

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
    AmdContext context(tree_.path(), std::move(options));
    page_ = std::make_unique<SampledPage>(
        std::make_unique<TableDevice<AmdContext>>(std::move(context), amd_rows()));
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
