#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "collectors/jobs/model/run_list.hpp"
#include "daemon/fleet/fleet.hpp"
#include "daemon/self/report.hpp"
#include "exporter/health/report.hpp"
#include "exporter/text/view.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/fake_collector.hpp"
#include "tests/fakes/no_threads.hpp"

namespace gpumeter {
namespace {

using namespace std::chrono_literals;

std::atomic<bool> opening_hangs = false;
std::atomic<int> inside_open = 0;

Result<std::unique_ptr<Collector>> open_hanging(const CollectorContext& context) {
  ++inside_open;
  while (opening_hangs) std::this_thread::sleep_for(1ms);
  --inside_open;
  return open_fake(context);
}
constexpr CollectorEntry kHanging = {"fake", true, 0, {}, no_rows, all_right, open_hanging};

std::string up(const std::string& uuid, const std::string& gpu, const std::string& value) {
  return "gpu_up{gpu=\"" + gpu + "\",uuid=\"" + uuid + "\",vendor=\"fake\"} " + value + "\n";
}

/// A fleet of two fake devices with faults around it; the test calls tick().
class FleetFaults : public testing::Test {
 protected:
  FleetFaults() : folder_(testing::TempDir() + "/faults-" + std::to_string(getpid())) {
    std::filesystem::remove_all(folder_);
    opening_hangs = false;
    for (const char* uuid : {"A", "B"}) {
      DeviceInfo info;
      info.uuid = uuid;
      info.vendor = "fake";
      machine_->plug(info);
    }
  }
  ~FleetFaults() override {
    opening_hangs = false;
    for (const char* uuid : {"A", "B"}) machine_->hang(uuid, false);
    machine_->hang_look("A", false);
    if (fleet_) fleet_->stop(SystemClock().monotonic() + 5s);
    std::filesystem::remove_all(folder_);
  }

  void make(const Clock& clock,
            const std::optional<std::vector<std::string>>& bus = std::vector<std::string>()) {
    FleetSettings settings;
    settings.intervals = {20ms, 200ms, 200ms, 20ms};
    IndexKeeper indexes(DeviceDirectory(folder_), nullptr, clock);
    fleet_ = std::make_shared<Fleet>(store_, parts_see_, clock, log_, std::move(indexes), settings);
    if (bus) fleet_->order_by(*bus);
  }
  void add(const CollectorEntry& entry, const Clock& clock) {
    fleet_->add({{&entry, fake_context(machine_, clock)}});
  }
  /// Ticks until the condition holds. If it never does, ctest's timeout fails the test.
  void until(const std::function<bool()>& so) {
    while (!so()) {
      fleet_->tick();
      std::this_thread::sleep_for(2ms);
    }
    fleet_->tick();
  }
  bool shows(const std::string& line) const {
    return TextView(*store_).render(Format::text).text.find(line) != std::string::npos;
  }
  bool collector_is_up() const {
    SelfState self;
    fleet_->describe(self);
    return self.collectors.at(0).up;
  }
  std::string state_of(std::size_t device) const { return fleet_->devices().at(device).state; }

  SystemClock clock_;
  Machine parts_see_;
  FakeClock fake_clock_;
  Log log_{clock_, {LogLevel::error, LogFormat::logfmt}};
  std::string folder_;
  std::shared_ptr<FakeMachine> machine_ = std::make_shared<FakeMachine>();
  std::shared_ptr<Store> store_ = std::make_shared<Store>();
  std::shared_ptr<Fleet> fleet_;
};

TEST_F(FleetFaults, ADiscoveryThatHangsShowsAndComesBack) {
  make(fake_clock_);
  add(kHanging, fake_clock_);
  until([&] { return collector_is_up(); });
  opening_hangs = true;
  ASSERT_TRUE(fleet_->release(1h));
  fleet_->restore();  // opens the collector again, which hangs
  until([&] { return inside_open > 0; });
  fake_clock_.advance(10s);
  fleet_->tick();
  EXPECT_TRUE(collector_is_up());
  fake_clock_.advance(1s);
  fleet_->tick();
  EXPECT_FALSE(collector_is_up());
  opening_hangs = false;
  until([&] { return collector_is_up(); });
}

TEST_F(FleetFaults, DevicesWithoutAThreadAreKnownAndGetOneLater) {
  opening_hangs = true;
  make(clock_);
  add(kHanging, clock_);
  {
    const NoThreads none;
    opening_hangs = false;
    until([&] { return shows(up("A", "0", "0")) && shows(up("B", "1", "0")); });
    EXPECT_EQ(state_of(0), "cannot start the thread lane-0: Resource temporarily unavailable");
    EXPECT_TRUE(fleet_->first_pass_over());
  }
  const Nanoseconds lifted = clock_.monotonic();
  until([&] { return shows(up("A", "0", "1")) && shows(up("B", "1", "1")); });
  EXPECT_LT(clock_.monotonic() - lifted, 10s);
}

TEST_F(FleetFaults, ACollectorWithoutAThreadIsDownAndGetsOneLater) {
  make(clock_);
  {
    const NoThreads none;
    add(kFake, clock_);
    EXPECT_FALSE(collector_is_up());
    fleet_->tick();
    EXPECT_FALSE(collector_is_up());
  }
  until([&] { return shows(up("A", "0", "1")) && shows(up("B", "1", "1")); });
  EXPECT_TRUE(collector_is_up());
}

TEST_F(FleetFaults, AReloadMakesNoSecondCallOnADeviceThatHangs) {
  make(clock_);
  add(kFake, clock_);
  until([&] { return shows(up("A", "0", "1")) && shows(up("B", "1", "1")); });
  machine_->hang("A", true);
  const int before = machine_->calls("A");
  until([&] { return machine_->calls("A") > before; });
  const int calls = machine_->calls("A");
  for (int reload = 0; reload < 3; ++reload) {
    fleet_->remove("fake", clock_.monotonic() + 50ms);
    add(kFake, clock_);
    until([&] { return shows(up("A", "0", "0")) && shows(up("B", "1", "1")); });
    EXPECT_EQ(state_of(0), "does not answer");
  }
  EXPECT_EQ(machine_->calls("A"), calls);
  EXPECT_FALSE(shows("gpu_power_watts{gpu=\"0\""));
  machine_->hang("A", false);
  until([&] { return shows(up("A", "0", "1")) && shows("gpu_power_watts{gpu=\"0\""); });
}

TEST_F(FleetFaults, ALookForMoreSourcesThatHangsIsAHang) {
  make(clock_);
  add(kFake, clock_);
  until([&] { return shows(up("A", "0", "1")) && shows("gpu_power_watts{gpu=\"0\""); });
  machine_->hang_look("A", true);
  until([&] { return machine_->looks() == 1; });
  until([&] { return shows(up("A", "0", "0")); });
  EXPECT_EQ(state_of(0), "does not answer");
  EXPECT_FALSE(shows("gpu_power_watts{gpu=\"0\""));
  EXPECT_TRUE(shows(up("B", "1", "1")));
  machine_->hang_look("A", false);
  until([&] { return shows(up("A", "0", "1")) && shows("gpu_power_watts{gpu=\"0\""); });
}

TEST_F(FleetFaults, ALookForMoreSourcesTakesAPlaceInTheDriver) {
  make(clock_);
  add(kFakeOneAtATime, clock_);
  until([&] { return shows(up("A", "0", "1")) && shows(up("B", "1", "1")); });
  machine_->hang_look("A", true);
  until([&] { return shows(up("A", "0", "0")) && shows(up("B", "1", "0")); });
  const int calls = machine_->calls("B");
  fleet_->tick();
  EXPECT_EQ(machine_->calls("B"), calls);
  machine_->hang_look("A", false);
  until([&] { return shows(up("A", "0", "1")) && shows(up("B", "1", "1")); });
}

TEST_F(FleetFaults, ADeviceThatIsForgottenWhileItHangsIsNotCalledAgain) {
  make(clock_);
  add(kFake, clock_);
  until([&] { return shows(up("A", "0", "1")) && shows(up("B", "1", "1")); });
  machine_->hang("A", true);
  const int before = machine_->calls("A");
  until([&] { return machine_->calls("A") > before; });
  const int calls = machine_->calls("A");
  machine_->unlist("A");
  FleetSettings settings;
  settings.intervals = {20ms, 200ms, 200ms, 20ms};
  settings.devices.forget = 0s;
  fleet_->configure(settings);
  fleet_->rediscover();
  until([&] { return fleet_->devices().size() == 1; });
  DeviceInfo info;
  info.uuid = "A";
  info.vendor = "fake";
  machine_->plug(info);
  fleet_->rediscover();
  until([&] { return fleet_->devices().size() == 2; });
  EXPECT_EQ(machine_->calls("A"), calls);
  EXPECT_EQ(state_of(0), "does not answer");
  EXPECT_FALSE(fleet_->release(1s));
  machine_->hang("A", false);
  until([&] { return shows(up("A", "0", "1")) && shows(up("B", "1", "1")); });
}

TEST_F(FleetFaults, AReloadStartsNoSecondDiscoveryWhereOneHangs) {
  opening_hangs = true;
  make(clock_);
  add(kHanging, clock_);
  until([&] { return inside_open == 1; });
  for (int reload = 0; reload < 3; ++reload) {
    fleet_->remove("fake", clock_.monotonic() + 20ms);
    add(kHanging, clock_);
    for (int i = 0; i < 10; ++i) {
      fleet_->tick();
      std::this_thread::sleep_for(2ms);
    }
    EXPECT_FALSE(collector_is_up());
    EXPECT_EQ(inside_open, 1);
  }
  opening_hangs = false;
  until([&] { return shows(up("A", "0", "1")) && shows(up("B", "1", "1")); });
}

TEST_F(FleetFaults, TheFirstDevicesWaitForTheBusButNotForLong) {
  make(fake_clock_, std::nullopt);
  add(kFake, fake_clock_);
  until([&] { return collector_is_up(); });
  EXPECT_TRUE(fleet_->devices().empty());
  fake_clock_.advance(3s);
  fleet_->tick();
  EXPECT_EQ(fleet_->devices().size(), 2U);
}

TEST_F(FleetFaults, TheFirstDevicesFollowTheBusOnceItIsSeen) {
  for (const auto& [uuid, address] : {std::pair("A", "0000:0a:00.0"), std::pair("B", "0000:03:00.0")}) {
    DeviceInfo info;
    info.uuid = uuid;
    info.vendor = "fake";
    info.pci_address = address;
    machine_->plug(info);
  }
  make(fake_clock_, std::nullopt);
  add(kFake, fake_clock_);
  until([&] { return collector_is_up(); });
  fleet_->order_by({"0000:03:00.0", "0000:05:00.0", "0000:0a:00.0"});
  ASSERT_EQ(fleet_->devices().size(), 2U);
  EXPECT_EQ(fleet_->devices()[0].uuid, "B");
  EXPECT_EQ(fleet_->devices()[1].index, 2U);
}

}  // namespace
}  // namespace gpumeter
