#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "collectors/amd/collector.hpp"
#include "tests/fakes/amd_machine.hpp"
#include "tests/fakes/real_clock.hpp"
#include "tests/fakes/sampled_page.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::amd {
namespace {

using std::chrono::seconds;

/// A card with a unique_id. Tests remove it, plug it in elsewhere, and reload its driver.
class AmdHotPlugTest : public testing::Test {
 protected:
  void plug(const std::string& address, const std::string& hwmon) {
    const std::string folder = "bus/pci/devices/" + address + "/";
    tree_.write(folder + "uevent", "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:73BF\n");
    tree_.write(folder + "unique_id", "c02a8c6b4d5e6f70\n");
    tree_.write(folder + "hwmon/" + hwmon + "/name", "amdgpu\n");
    tree_.write(folder + "hwmon/" + hwmon + "/power1_average", "100000000\n");
  }
  void pull(const std::string& address) { tree_.remove("bus/pci/devices/" + address); }

  std::vector<DeviceInfo> discovered() const { return (*collector_->discover()).devices; }

  const Tree tree_{{}};
  const std::unique_ptr<Collector> collector_ = *open_amd({tree_.path(), "/proc", &kRealClock, {}});
};

constexpr const char* kAfterTenSeconds =
    "gpu_energy_joules_total 1000\n"
    "gpu_power_max_watts{window=\"1m\"} 100\n"
    "gpu_power_min_watts{window=\"1m\"} 100\n"
    "gpu_power_watts 100\n";
constexpr const char* kAfterTwentySeconds =
    "gpu_energy_joules_total 2000\n"
    "gpu_power_max_watts{window=\"1m\"} 100\n"
    "gpu_power_min_watts{window=\"1m\"} 100\n"
    "gpu_power_watts 100\n";

TEST_F(AmdHotPlugTest, ANewNumberOfHwmonIsFoundAndCountersGoOn) {
  plug("0000:0c:00.0", "hwmon5");
  SampledPage page(collector_->device(discovered().front()));
  page.attach(discovered().front());
  page.pass(Tier::fast, seconds(10));
  EXPECT_EQ(page.text(), kAfterTenSeconds);

  pull("0000:0c:00.0");
  plug("0000:0c:00.0", "hwmon6");
  page.attach(discovered().front());  // the lane does this after it has lost the card
  page.pass(Tier::fast, seconds(10));
  EXPECT_EQ(page.text(), kAfterTwentySeconds);
}

TEST_F(AmdHotPlugTest, ACardInAnotherSlotIsTheSameCardAndItsCountersGoOn) {
  plug("0000:0c:00.0", "hwmon5");
  const DeviceInfo before = discovered().front();
  SampledPage page(collector_->device(before));
  page.attach(before);
  page.pass(Tier::fast, seconds(10));

  pull("0000:0c:00.0");
  EXPECT_TRUE(discovered().empty());
  plug("0000:41:00.0", "hwmon0");
  const DeviceInfo after = discovered().front();
  EXPECT_EQ(after.uuid, before.uuid);
  EXPECT_EQ(after.pci_address, "0000:41:00.0");
  page.attach(after);
  page.pass(Tier::fast, seconds(10));
  EXPECT_EQ(page.text(), kAfterTwentySeconds);
}

}  // namespace
}  // namespace gpumeter::amd
