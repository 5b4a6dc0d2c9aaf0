#include <gtest/gtest.h>

#include <string>

#include "collectors/amd/collector.hpp"
#include "tests/fakes/amd_machine.hpp"
#include "tests/fakes/real_clock.hpp"
#include "tests/fakes/sampled_page.hpp"
#include "tests/fakes/sleepy_card.hpp"

namespace gpumeter::amd {
namespace {

using std::chrono::seconds;

/// A Radeon that falls asleep by itself, read as by its lane.
class AmdSleepTest : public testing::Test {
 protected:
  AmdSleepTest() {
    info_ = (*collector_->discover()).devices.front();
    page_.emplace(collector_->device(info_));
    page_->attach(info_);
    page_->pass_all();
    card_.tick(page_->now());
  }

  void write(const std::string& name, std::string_view content) {
    tree_->write(radeon_folder(0) + name, content);
  }

  /// Runs fast passes, one a second, and some of the slower tiers.
  void run(int count) {
    for (int i = 0; i < count; ++i) {
      page_->pass(i % 10 == 9 ? Tier::normal : i % 60 == 33 ? Tier::slow : Tier::fast, seconds(1));
      card_.tick(page_->now());
    }
  }

  const std::unique_ptr<Tree> tree_ = make_radeon_machine(1);
  SleepyCard card_{*tree_, radeon_folder(0)};
  const std::unique_ptr<Collector> collector_ = *open_amd({tree_->path(), "/proc", &kRealClock, {}});
  DeviceInfo info_;
  std::optional<SampledPage> page_;
};

TEST_F(AmdSleepTest, AnIdleCardFallsAsleepAndIsNeverWoken) {
  write("gpu_busy_percent", "0\n");
  run(30);
  EXPECT_TRUE(card_.asleep());
  run(1000);
  EXPECT_TRUE(card_.asleep());
  EXPECT_EQ(card_.wake_ups(), 0);
  EXPECT_EQ(page_->text({"gpu_throttle"}),
            "gpu_busy_seconds_total 0\n"
            "gpu_energy_joules_total 1416\n"
            "gpu_memory_controller_busy_seconds_total 2.46\n"
            "gpu_memory_free_bytes{memory=\"gtt\"} 16723802112\n"
            "gpu_memory_free_bytes{memory=\"vram\"} 16494817280\n"
            "gpu_memory_size_bytes{memory=\"gtt\"} 16786171904\n"
            "gpu_memory_size_bytes{memory=\"vram\"} 17163091968\n"
            "gpu_memory_used_bytes{memory=\"gtt\"} 62369792\n"
            "gpu_memory_used_bytes{memory=\"vram\"} 668274688\n"
            "gpu_pcie_replays_total 0\n"
            "gpu_suspended 1\n"
            "gpu_visible_memory_size_bytes 17163091968\n"
            "gpu_visible_memory_used_bytes 668274688\n");
}

TEST_F(AmdSleepTest, DiscoveryDoesNotWakeIt) {
  write("gpu_busy_percent", "0\n");
  run(30);
  ASSERT_TRUE(card_.asleep());
  EXPECT_EQ((*collector_->discover()).devices.front(), info_);
  page_->attach(info_);  // as after a reload of the configuration
  page_->pass_all();
  card_.tick(page_->now());
  EXPECT_EQ(card_.wake_ups(), 0);
}

TEST_F(AmdSleepTest, ABusyCardIsReadAsUsual) {
  const int before = card_.waking_passes();
  run(200);
  EXPECT_FALSE(card_.asleep());
  EXPECT_EQ(card_.waking_passes() - before, 200);
}

TEST_F(AmdSleepTest, OneThatSomethingElseKeepsAwakeIsLookedAtOnceAMinute) {
  write("gpu_busy_percent", "0\n");
  card_.hold(true);
  run(20);
  const int before = card_.waking_passes();
  run(600);
  EXPECT_EQ(card_.waking_passes() - before, 10);
}

TEST_F(AmdSleepTest, OneWithAScreenOnIsReadAsUsual) {
  write("gpu_busy_percent", "0\n");
  write("drm/card0/card0-DP-1/dpms", "Off\n");
  write("drm/card0/card0-DP-2/dpms", "On\n");
  page_->attach(info_);
  card_.hold(true);
  const int before = card_.waking_passes();
  run(120);
  EXPECT_EQ(card_.waking_passes() - before, 120);
  write("drm/card0/card0-DP-2/dpms", "Off\n");
  card_.hold(false);
  run(60);
  EXPECT_TRUE(card_.asleep());
}

TEST_F(AmdSleepTest, OneOnWhichAProcessHoldsMemoryIsReadAsUsual) {
  const std::string node = "class/kfd/kfd/topology/nodes/1/";
  write("gpu_busy_percent", "0\n");
  tree_->write(node + "gpu_id", "4711\n");
  tree_->write(node + "properties", "simd_count 80\nsimd_per_cu 2\nlocation_id 768\n");  // 03:00.0
  tree_->write("class/kfd/kfd/proc/99/vram_4711", "0\n");  // computes on another card
  page_->attach(info_);
  run(30);
  EXPECT_TRUE(card_.asleep());

  tree_->write("class/kfd/kfd/proc/100/vram_4711", "1073741824\n");
  card_.hold(true);  // this wakes the card
  card_.tick(page_->now());
  const int before = card_.waking_passes();
  run(120);
  EXPECT_EQ(card_.waking_passes() - before, 120);

  tree_->remove("class/kfd/kfd/proc/100");
  card_.hold(false);
  run(30);
  EXPECT_TRUE(card_.asleep());
}

TEST_F(AmdSleepTest, OneThatIsBusyAtTheLookIsReadAsUsualAgain) {
  write("gpu_busy_percent", "0\n");
  card_.hold(true);
  run(20);
  write("gpu_busy_percent", "50\n");
  run(61);
  const int before = card_.waking_passes();
  run(60);
  EXPECT_EQ(card_.waking_passes() - before, 60);
}

TEST_F(AmdSleepTest, AJobIsNoticedAtOnceByItsMemory) {
  write("gpu_busy_percent", "0\n");
  card_.hold(true);
  run(15);
  write("gpu_busy_percent", "77\n");
  EXPECT_EQ(page_->pass(Tier::fast, seconds(1)), PassOutcome::asleep);
  write("mem_info_vram_used", "768274688\n");
  EXPECT_EQ(page_->pass(Tier::fast, seconds(1)), PassOutcome::complete);
}

TEST_F(AmdSleepTest, WithPowerControlOnItIsReadAlways) {
  write("gpu_busy_percent", "0\n");
  write("power/control", "on\n");
  const int before = card_.waking_passes();
  card_.hold(true);
  run(200);
  EXPECT_EQ(card_.waking_passes() - before, 200);
}

TEST_F(AmdSleepTest, WokenByOthersItIsReadAgain) {
  write("gpu_busy_percent", "0\n");
  run(30);
  ASSERT_TRUE(card_.asleep());
  card_.hold(true);
  card_.tick(page_->now());
  EXPECT_EQ(page_->pass(Tier::fast, seconds(1)), PassOutcome::complete);
}

}  // namespace
}  // namespace gpumeter::amd
