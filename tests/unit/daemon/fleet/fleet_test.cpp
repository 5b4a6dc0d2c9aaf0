#include "daemon/fleet/fleet.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>

#include "collectors/jobs/model/run_list.hpp"
#include "daemon/fleet/state_keeper.hpp"
#include "daemon/self/report.hpp"
#include "exporter/health/report.hpp"
#include "exporter/text/view.hpp"
#include "tests/fakes/fake_collector.hpp"

namespace gpumeter {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

DeviceInfo card(const std::string& uuid, const std::string& pci_address) {
  DeviceInfo info;
  info.uuid = uuid;
  info.vendor = "fake";
  info.pci_address = pci_address;
  return info;
}

std::string line(const std::string& family, const std::string& gpu, const std::string& uuid,
                 const std::string& value) {
  return family + "{gpu=\"" + gpu + "\",uuid=\"" + uuid + "\",vendor=\"fake\"} " + value + "\n";
}

std::atomic<bool> late_may_open = false;
Result<std::unique_ptr<Collector>> open_late(const CollectorContext&) {
  while (!late_may_open) std::this_thread::sleep_for(milliseconds(1));
  return Error("late");
}
constexpr CollectorEntry kLate = {"late", true, 0, {}, no_rows, all_right, open_late};

/// The machine's clocks, which the test sets ahead.
class SetClock final : public Clock {
 public:
  Nanoseconds monotonic() const noexcept override { return real_.monotonic() + seconds(later); }
  Nanoseconds boottime() const noexcept override { return real_.boottime() + seconds(later); }
  Nanoseconds realtime() const noexcept override { return real_.realtime() + seconds(ahead + later); }

  std::atomic<int> ahead = 0;  ///< the wall clock alone, in seconds
  std::atomic<int> later = 0;  ///< all clocks, in seconds

 private:
  const SystemClock real_;
};

/// A fleet on a fake machine with real threads; the test calls tick().
class FleetTest : public testing::Test {
 protected:
  FleetTest() : folder_(testing::TempDir() + "/fleet-" + std::to_string(getpid())) {
    std::filesystem::remove_all(folder_);
    machine_->plug(card("A", "0000:0a:00.0"));
    machine_->plug(card("B", "0000:03:00.0"));
  }
  ~FleetTest() override {
    for (const char* uuid : {"A", "B", "C"}) machine_->hang(uuid, false);
    if (fleet_) fleet_->stop(clock_.monotonic() + seconds(5));
    if (keeper_) keeper_->stop(clock_.monotonic() + seconds(5));
    std::filesystem::remove_all(folder_);
  }

  void start(const CollectorEntry& entry = kFake) {
    keeper_ = std::make_shared<StateKeeper>(FiguresFolders{folder_}, clock_, log_);
    IndexKeeper indexes(keeper_->load(clock_.monotonic() + seconds(30)), keeper_, clock_);
    FleetSettings settings;
    settings.devices.forget = forget_;
    settings.intervals = {milliseconds(20), milliseconds(200), milliseconds(200), milliseconds(20)};
    fleet_ = std::make_shared<Fleet>(store_, parts_see_, clock_, log_, std::move(indexes), settings);
    fleet_->order_by(bus_);
    fleet_->add({{&entry, fake_context(machine_, clock_)}});
    until([this] { return fleet_->first_pass_over(); });
  }

  void start_without_keeper() {
    IndexKeeper indexes(DeviceDirectory(folder_), nullptr, clock_);
    fleet_ = std::make_shared<Fleet>(store_, parts_see_, clock_, log_, std::move(indexes), FleetSettings());
    fleet_->order_by(bus_);
  }

  void restart_without_b() {
    ASSERT_TRUE(fleet_->stop(clock_.monotonic() + seconds(5)));
    ASSERT_TRUE(keeper_->stop(clock_.monotonic() + seconds(5)));
    fleet_.reset();
    machine_->pull("B");
    start();
  }

  /// Nothing is saved at the end of a daemon that is killed.
  void crash_and_restart() {
    until([this] { return std::filesystem::exists(folder_ + "/devices.json"); });
    std::filesystem::copy_file(folder_ + "/devices.json", folder_ + "/at_the_crash");
    ASSERT_TRUE(fleet_->stop(clock_.monotonic() + seconds(5)));
    ASSERT_TRUE(keeper_->stop(clock_.monotonic() + seconds(5)));
    fleet_.reset();
    std::filesystem::rename(folder_ + "/at_the_crash", folder_ + "/devices.json");
    start();
  }

  /// Ticks until the condition holds. If it never does, ctest's timeout fails the test.
  void until(const std::function<bool()>& so) {
    while (!so()) {
      fleet_->tick();
      std::this_thread::sleep_for(milliseconds(2));
    }
    fleet_->tick();
  }
  bool shows(const std::string& line) const {
    return TextView(*store_).render(Format::text).text.find(line) != std::string::npos;
  }

  bool says_released() const {
    SelfState self;
    fleet_->describe(self);
    return self.collectors.at(0).released;
  }

  SetClock clock_;
  Machine parts_see_;
  Log log_{clock_, {LogLevel::error, LogFormat::logfmt}};
  std::string folder_;
  std::vector<std::string> bus_ = {"0000:03:00.0", "0000:0a:00.0"};
  std::shared_ptr<FakeMachine> machine_ = std::make_shared<FakeMachine>();
  std::shared_ptr<Store> store_ = std::make_shared<Store>();
  std::optional<Duration> forget_;
  std::shared_ptr<StateKeeper> keeper_;
  std::shared_ptr<Fleet> fleet_;
};

// Otherwise a device of the last collector could have another index after the next start.
TEST_F(FleetTest, TheFirstDevicesWaitForAllCollectors) {
  late_may_open = false;
  start_without_keeper();
  fleet_->add({{&kFake, fake_context(machine_, clock_)}, {&kLate, fake_context(machine_, clock_)}});
  for (int i = 0; i < 50; ++i) {
    fleet_->tick();
    ASSERT_TRUE(fleet_->devices().empty());
    ASSERT_FALSE(fleet_->first_pass_over());
    std::this_thread::sleep_for(milliseconds(2));
  }
  late_may_open = true;
  until([this] { return fleet_->first_pass_over(); });
  EXPECT_EQ(fleet_->devices().size(), 2U);
}

TEST_F(FleetTest, IndexesFollowThePciOrder) {
  start();
  EXPECT_TRUE(shows(line("gpu_power_watts", "0", "B", "100")));
  EXPECT_TRUE(shows(line("gpu_power_watts", "1", "A", "100")));
  EXPECT_TRUE(shows(line("gpu_up", "0", "B", "1")));
}

TEST_F(FleetTest, AHungDeviceLosesItsValuesAndHurtsNobodyElse) {
  start();
  machine_->hang("A", true);
  until([&] { return shows(line("gpu_up", "1", "A", "0")); });
  EXPECT_FALSE(shows(line("gpu_power_watts", "1", "A", "100")));
  EXPECT_TRUE(shows(line("gpu_power_watts", "0", "B", "100")));

  const int calls_of_a = machine_->calls("A");
  const int calls_of_b = machine_->calls("B");
  until([&] { return machine_->calls("B") > calls_of_b + 5; });
  EXPECT_EQ(machine_->calls("A"), calls_of_a);  // no second call to a hanging device

  machine_->hang("A", false);
  until([&] { return shows(line("gpu_up", "1", "A", "1")); });
  until([&] { return shows(line("gpu_power_watts", "1", "A", "100")); });
}

TEST_F(FleetTest, ALostDeviceComesBackUnderItsIndex) {
  start();
  machine_->pull("B");
  until([&] { return shows(line("gpu_up", "0", "B", "0")); });
  EXPECT_FALSE(shows(line("gpu_power_watts", "0", "B", "100")));
  machine_->plug(card("B", "0000:0f:00.0"));  // in another slot
  until([&] { return shows(line("gpu_up", "0", "B", "1")); });
  EXPECT_TRUE(shows(line("gpu_power_watts", "0", "B", "100")));
}

TEST_F(FleetTest, ADeviceThatComesIsThereOnceItIsLookedFor) {
  bus_.emplace_back("0000:0b:00.0");
  start();
  machine_->plug(card("C", "0000:0b:00.0"));
  fleet_->rediscover();
  until([&] { return shows(line("gpu_power_watts", "2", "C", "100")); });
}

TEST_F(FleetTest, ADeviceThatDiscoveryDoesNotFindIsLostThoughItAnswersAndComesBack) {
  start();
  machine_->unlist("B");
  fleet_->rediscover();
  until([&] { return shows(line("gpu_up", "0", "B", "0")); });
  EXPECT_FALSE(shows(line("gpu_power_watts", "0", "B", "100")));
  EXPECT_FALSE(machine_->is_open("B"));
  EXPECT_TRUE(shows(line("gpu_power_watts", "1", "A", "100")));
  machine_->plug(card("B", "0000:0f:00.0"));
  fleet_->rediscover();
  until([&] { return shows(line("gpu_power_watts", "0", "B", "100")); });
}

TEST_F(FleetTest, ReleasedDriversAreNotLookedInto) {
  start();
  ASSERT_TRUE(fleet_->release(seconds(60)));
  fleet_->rediscover();
  fleet_->tick();
  EXPECT_FALSE(machine_->is_open("A") || machine_->is_open("B"));
}

TEST_F(FleetTest, ADeviceThatIsMissingAfterARestartKeepsItsNumberAndItsUpLine) {
  start();
  restart_without_b();
  EXPECT_TRUE(shows(line("gpu_power_watts", "1", "A", "100")));
  EXPECT_TRUE(shows(line("gpu_up", "0", "B", "0")));
  ASSERT_EQ(fleet_->devices().size(), 2u);
  EXPECT_EQ(fleet_->devices()[0].state, "missing");
}

// The time in which the daemon did not run does not count, because no discovery ran then.
TEST_F(FleetTest, ADeviceIsForgottenOnceItWasLookedForInVainForSoLong) {
  forget_ = milliseconds(300);
  start();
  std::this_thread::sleep_for(*forget_);
  restart_without_b();
  EXPECT_TRUE(shows(line("gpu_up", "0", "B", "0")));
  until([&] { return fleet_->devices().size() == 1; });
  EXPECT_FALSE(shows(line("gpu_up", "0", "B", "0")));
  EXPECT_TRUE(shows(line("gpu_up", "1", "A", "1")));
}

TEST_F(FleetTest, AWallClockThatIsSetForgetsNobody) {
  start();
  machine_->pull("B");
  until([&] { return shows(line("gpu_up", "0", "B", "0")); });
  for (const int hours : {25, -25}) {
    clock_.ahead = hours * 3600;
    for (int i = 0; i < 10; ++i) fleet_->tick();
    EXPECT_TRUE(shows(line("gpu_up", "0", "B", "0")));
  }
}

// The machine reboots without the card after a crash of the daemon, and nobody does anything for 25 hours.
TEST_F(FleetTest, ALostDeviceIsDownUntilAPersonForgetsIt) {
  start();
  machine_->pull("B");
  until([&] { return shows(line("gpu_up", "0", "B", "0")); });
  crash_and_restart();
  for (int hour = 0; hour < 25; ++hour) {
    clock_.later += 3600;
    for (int i = 0; i < 3; ++i) fleet_->tick();
    ASSERT_TRUE(shows(line("gpu_up", "0", "B", "0"))) << hour;
  }
  ASSERT_TRUE(fleet_->forget("B"));
  fleet_->tick();
  EXPECT_FALSE(shows("uuid=\"B\""));
  ASSERT_EQ(fleet_->devices().size(), 1U);
  EXPECT_EQ(fleet_->devices()[0].index, 1U);
}

TEST_F(FleetTest, ADeviceThatIsThereOrNotKnownIsNotForgotten) {
  start();
  Result<Done> done = fleet_->forget("A");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message(), "A is still there; discovery would find it again");
  machine_->pull("B");
  until([&] { return shows(line("gpu_up", "0", "B", "0")); });
  fleet_->rediscover();
  until([&] { return fleet_->forget("C").error().message().ends_with("B"); });
  EXPECT_EQ(fleet_->forget("C").error().message(), "C is not a known device; missing are B");
  ASSERT_TRUE(fleet_->release(seconds(60)));
  done = fleet_->forget("B");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message(), "the drivers are closed (SIGUSR1); open them again by SIGUSR2");
}

TEST_F(FleetTest, AForgottenDeviceThatReturnsIsANewOne) {
  start();
  restart_without_b();
  ASSERT_TRUE(fleet_->forget("B"));
  machine_->plug(card("B", "0000:03:00.0"));
  fleet_->rediscover();
  until([&] { return shows(line("gpu_power_watts", "0", "B", "100")); });
}

// A crash loses at most a minute of last_seen.
TEST_F(FleetTest, TheTimeOfTheLastReadingIsOnTheDiskOnceAMinute) {
  start();
  const auto last_seen = [this] {
    DeviceDirectory saved(folder_);
    const bool is_there = saved.load() && saved.find("A") != nullptr;
    return is_there ? saved.find("A")->last_seen : Nanoseconds(0);
  };
  until([&] { return last_seen() > Nanoseconds(0); });
  const Nanoseconds before = last_seen();
  clock_.later += 61;
  until([&] { return last_seen() >= before + seconds(60); });
}

TEST_F(FleetTest, WithoutPatienceDevicesThatAreThereStayAndLostOnesGoOnceDiscoveryMissesThem) {
  forget_ = Duration(0);
  start();
  EXPECT_EQ(fleet_->devices().size(), 2U);
  machine_->hang("A", true);  // it is still on the bus
  until([&] { return shows(line("gpu_up", "1", "A", "0")); });
  machine_->pull("B");
  until([&] { return fleet_->devices().size() == 1; });
  EXPECT_TRUE(shows(line("gpu_up", "1", "A", "0")));
}

TEST_F(FleetTest, ADeviceIsNotForgottenWhileItsFirstPassIsUnderWay) {
  machine_->hang("A", true);
  machine_->hang("B", true);
  start_without_keeper();
  fleet_->add({{&kFake, fake_context(machine_, clock_)}});
  until([&] { return machine_->calls("A") > 0 && machine_->calls("B") > 0; });
  EXPECT_EQ(fleet_->devices().size(), 2u);
}

TEST_F(FleetTest, AtMostAsManyLanesAsTheDriverTakesAreInsideIt) {
  machine_->plug(card("C", "0000:0b:00.0"));
  machine_->linger();
  start(kFakeOneAtATime);
  until([&] { return machine_->calls("C") > 5; });
  EXPECT_EQ(machine_->most_inside(), 1);
}

TEST_F(FleetTest, ADriverFullOfHungCallsIsStuckAsAWhole) {
  start(kFakeOneAtATime);
  machine_->hang("A", true);
  until([&] { return shows(line("gpu_up", "1", "A", "0")) && shows(line("gpu_up", "0", "B", "0")); });
  const int calls_of_b = machine_->calls("B");
  fleet_->tick();
  EXPECT_EQ(machine_->calls("B"), calls_of_b);
  machine_->hang("A", false);
  until([&] { return shows(line("gpu_up", "0", "B", "1")); });
}

TEST_F(FleetTest, ReleasedDriversAreClosedUntilTheyAreRestored) {
  start();
  ASSERT_TRUE(fleet_->release(seconds(60)));
  EXPECT_FALSE(machine_->is_open("A") || machine_->is_open("B"));
  fleet_->tick();
  EXPECT_TRUE(shows(line("gpu_up", "1", "A", "0")));
  EXPECT_FALSE(shows(line("gpu_power_watts", "1", "A", "100")));
  EXPECT_TRUE(says_released());
  fleet_->restore();
  until([&] { return shows(line("gpu_up", "1", "A", "1")); });
  EXPECT_TRUE(machine_->is_open("A") && machine_->is_open("B"));
  EXPECT_FALSE(says_released());
}

TEST_F(FleetTest, ReleasedDriversAreOpenedAgainInTime) {
  start();
  ASSERT_TRUE(fleet_->release(milliseconds(50)));
  until([&] { return shows(line("gpu_up", "1", "A", "0")) || machine_->is_open("A"); });
  until([&] { return shows(line("gpu_up", "1", "A", "1")); });
}

TEST_F(FleetTest, ADriverWithACallUnderWayIsNotClosed) {
  start();
  machine_->hang("A", true);
  const int calls = machine_->calls("A");
  until([&] { return machine_->calls("A") > calls; });
  EXPECT_FALSE(fleet_->release(seconds(60)));
  EXPECT_FALSE(says_released());
  machine_->hang("A", false);
  until([&] { return shows(line("gpu_up", "1", "A", "1")) && shows(line("gpu_up", "0", "B", "1")); });
}

TEST_F(FleetTest, StopLeavesAHungLaneBehind) {
  start();
  machine_->hang("A", true);
  const int calls = machine_->calls("A");
  until([&] { return machine_->calls("A") > calls; });
  EXPECT_FALSE(fleet_->stop(clock_.monotonic() + milliseconds(200)));
}

TEST_F(FleetTest, ACollectorThatIsRemovedTakesItsSeriesAlong) {
  start();
  fleet_->remove("fake", clock_.monotonic() + seconds(5));
  EXPECT_EQ(TextView(*store_).render(Format::text).text, "");
}

TEST_F(FleetTest, ADeviceWithoutAGoodReadingIsDownUntilItHasOne) {
  start();
  until([this] { return shows(line("gpu_up", "1", "A", "1")); });
  machine_->fail("A", true);
  until([this] { return shows(line("gpu_up", "1", "A", "0")); });
  EXPECT_FALSE(shows(line("gpu_power_watts", "1", "A", "100")));
  EXPECT_FALSE(shows("gpu_info{gpu=\"1\""));
  EXPECT_TRUE(shows(line("gpu_up", "0", "B", "1")));
  EXPECT_TRUE(fleet_->devices().at(1).state.starts_with("every read fails: denied"));
  SelfState self;
  fleet_->describe(self);
  const auto denied = static_cast<std::size_t>(ReadStatus::denied);
  EXPECT_GE(self.collectors.at(0).read_errors.at(1).at(denied), 3U);
  EXPECT_EQ(self.collectors.at(0).read_errors.at(0).at(denied), 0U);
  machine_->fail("A", false);
  until([this] {
    return shows(line("gpu_up", "1", "A", "1")) && shows(line("gpu_power_watts", "1", "A", "100"));
  });
}

TEST_F(FleetTest, ADeviceThatWasNeverReadIsNotUp) {
  machine_->fail("A", true);
  start();
  EXPECT_TRUE(shows(line("gpu_up", "1", "A", "0")));
  machine_->fail("A", false);
  until([this] { return shows(line("gpu_up", "1", "A", "1")); });
}

}  // namespace
}  // namespace gpumeter
