#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "collectors/intel/card.hpp"
#include "tests/fakes/intel_card_test.hpp"
#include "tests/fakes/sleepy_card.hpp"

namespace gpumeter::intel {
namespace {

using std::chrono::seconds;

constexpr const char* kFolder = "bus/pci/devices/0000:03:00.0";

/// A card that falls asleep by itself, read as by its lane. Its clock is below its function, so SleepyCard
/// watches the sensors, which every fast pass reads.
class IntelSleepTest : public OneIntelCard {
 protected:
  IntelSleepTest() {
    write("hwmon/hwmon1/name", "xe\n");
    write("hwmon/hwmon1/energy2_label", "pkg\n");
    write("hwmon/hwmon1/energy2_input", "5000000\n");
    write("hwmon/hwmon1/temp2_label", "pkg\n");
    write("hwmon/hwmon1/temp2_input", "40000\n");
    write("tile0/gt0/freq0/act_freq", "0\n");
    card_.emplace(tree_, kFolder);
  }

  void start() {
    attach();
    page_->pass_all();
    card_->tick(page_->now());
  }
  /// Runs fast passes, one a second, and some of the slower tiers.
  void run(int count) {
    for (int i = 0; i < count; ++i) {
      page_->pass(i % 10 == 9 ? Tier::normal : i % 60 == 33 ? Tier::slow : Tier::fast, seconds(1));
      card_->tick(page_->now());
    }
  }

  std::optional<SleepyCard> card_;
};

TEST_F(IntelSleepTest, AnIdleCardFallsAsleepAndIsNeverWoken) {
  start();
  run(30);
  EXPECT_TRUE(card_->asleep());
  run(1000);
  EXPECT_TRUE(card_->asleep());
  EXPECT_EQ(card_->wake_ups(), 0);
  EXPECT_EQ(page_->text(),
            "gpu_energy_joules_total 5\n"
            "gpu_rail_energy_joules_total{rail=\"package\"} 5\n"
            "gpu_suspended 1\n");
}

TEST_F(IntelSleepTest, ACardWhoseClockRunsIsReadAsUsual) {
  write("tile0/gt0/freq0/act_freq", "1200\n");
  start();
  run(100);
  EXPECT_FALSE(card_->asleep());
  EXPECT_GE(card_->waking_passes(), 85);  // all passes of the fast tier
}

TEST_F(IntelSleepTest, ACardWithAScreenThatIsOnIsReadAsUsual) {
  write("drm/card0/card0-DP-1/dpms", "On\n");
  start();
  run(100);
  EXPECT_FALSE(card_->asleep());
}

/// An opener that counts the events that are open.
class CountingOpener final : public pmu::Opener {
 public:
  pmu::Opened open(const pmu::Event& event) override {
    if ((event.config >> 12 & 0xff) > 0) return ReadStatus::gone;  // engine_instance
    return std::make_unique<Tick>(open_);
  }
  int open_events() const { return static_cast<int>(open_.use_count()) - 1; }

 private:
  struct Tick final : pmu::Counter {
    explicit Tick(std::shared_ptr<std::uint64_t> alive) : counted(std::move(alive)) {}
    ReadStatus read(std::uint64_t& count) noexcept override {
      count = ++*counted;
      return ReadStatus::ok;
    }
    std::shared_ptr<std::uint64_t> counted;
  };
  std::shared_ptr<std::uint64_t> open_ = std::make_shared<std::uint64_t>(0);
};

class IntelEventSleepTest : public IntelSleepTest {
 protected:
  IntelEventSleepTest() {
    const std::string pmu = "bus/event_source/devices/xe_0000_03_00.0/";
    tree_.write(pmu + "type", "26\n");
    tree_.write(pmu + "events/engine-active-ticks", "event=0x02\n");
    tree_.write(pmu + "events/engine-total-ticks", "event=0x03\n");
    tree_.write(pmu + "format/event", "config:0-11\n");
    tree_.write(pmu + "format/engine_instance", "config:12-19\n");
    tree_.write(pmu + "format/engine_class", "config:20-27\n");
    tree_.write(pmu + "format/gt", "config:60-63\n");
    write("tile0/gt0/engines/rcs/job_timeout_ms", "5000\n");
    environment_.pmu = opener_;
  }
  const std::shared_ptr<CountingOpener> opener_ = std::make_shared<CountingOpener>();
};

TEST_F(IntelEventSleepTest, EventsThatHoldTheCardAwakeAreNotOpenWhileItMaySleep) {
  start();
  EXPECT_EQ(opener_->open_events(), 0);
  write("power/control", "on\n");
  page_->pass(Tier::fast, seconds(1));
  ASSERT_TRUE(page_->has_more(page_->now()));
  attach();
  EXPECT_EQ(opener_->open_events(), 2);
  write("power/control", "auto\n");
  page_->pass(Tier::fast, seconds(1));
  EXPECT_EQ(opener_->open_events(), 0);
  EXPECT_TRUE(page_->has_more(page_->now()));
}

}  // namespace
}  // namespace gpumeter::intel
