// What was seen of links in the field, through the collector, the store and the judge, on a fake clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/nvidia/collector.hpp"
#include "collectors/table/device.hpp"
#include "daemon/lane/device_session.hpp"
#include "exporter/health/judge.hpp"
#include "exporter/store/series_list.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/fake_driver.hpp"

namespace gpumeter {
namespace {

using namespace std::chrono_literals;
using health::DeviceHealth;
using health::Judge;

constexpr SamplingIntervals kIntervals{1s, 10s, 60s};

/// A machine of fake GPUs, sampled and judged once a minute, or every ten where little happens. The driver's
/// time is the clock's.
class Machine {
 public:
  Machine(const std::string& scenario, const std::vector<std::string>& uuids) : driver_(scenario) {
    driver_.set_time(0);
    for (const std::string& uuid : uuids) {
      DeviceInfo info;
      info.uuid = uuid;
      info.vendor = "nvidia";
      info.model = "NVIDIA GB200";
      DeviceIdentity identity{"nvidia", static_cast<unsigned>(sessions_.size()), info, ""};
      auto device = std::make_unique<TableDevice<nvidia::NvidiaContext>>(
          nvidia::NvidiaContext({driver_.library(), false}), nvidia::nvidia_rows(),
          nvidia::nvidia_partition_rows());
      sessions_.push_back(
          std::make_unique<DeviceSession>(std::move(device), identity, DeviceLabels{}, store_, clock_));
      EXPECT_TRUE(sessions_.back()->attach(info));
      for (const Tier tier : kTiers) sessions_.back()->run(tier, kIntervals, nullptr);
    }
  }

  void pass(std::chrono::minutes time = 1min) {
    clock_.advance(time);
    driver_.set_time(to_seconds(clock_.monotonic()));
    for (const auto& session : sessions_) {
      for (const Tier tier : {Tier::fast, Tier::slow, Tier::fast}) session->run(tier, kIntervals, nullptr);
      if (session->has_more()) session->rebind(kIntervals);
      own_.add(catalog::up, Labels(session->identity().info, session->identity().index, ""), 1);
    }
    own_.commit(clock_.monotonic());
    health_ = judge_->judge(*store_, clock_.monotonic()).devices;
  }

  /// "link_errors: link 14: 2 recoveries in 24 h" of a device, a reason a line.
  std::string findings(std::size_t device = 0) const {
    std::string text;
    for (const health::Finding& finding : health_.at(device).findings)
      text += finding.reason + ": " + finding.text + "\n";
    return text;
  }
  std::vector<std::string> links_shown() const {
    std::vector<std::string> links;
    store_->walk([&](const Family& family) {
      if (&family.descriptor() != &catalog::link_up) return;
      family.for_each([&](const Series& series) {
        for (const auto& [name, value] : series.labels().pairs()) {
          if (name == "link") links.emplace_back(value);
        }
      });
    });
    return links;
  }
  void restart_judge() {
    health::Events events = judge_->events();
    judge_.emplace().resume(std::move(events));
  }

 private:
  FakeDriver driver_;
  FakeClock clock_;
  std::shared_ptr<Store> store_ = std::make_shared<Store>();
  std::vector<std::unique_ptr<DeviceSession>> sessions_;
  SeriesList own_{store_->attach("nvidia")};
  std::optional<Judge> judge_{std::in_place};
  std::vector<DeviceHealth> health_;
};

// marin-community/marin issue 9086: link 14 had 505 recoveries, made 3 more in 21 minutes and 1 later that
// day, and went down five days later. All other links of the machine room had none.
constexpr const char* kFlapping = R"(
devices:
  - uuid: GPU-0
    nvlink: {count: 18}
    fields:
      164: {scopes: {each: 53125}}
      165: {scopes: {14: {steps: [[0, active], [432000, inactive]]}, each: active}}
      213: {scopes: {14: {steps: [[0, FIRST], [3780, A], [4200, B], [4980, C], [30000, D]]}, each: 0}}
      214: {scopes: {each: 0}}
      220: {scopes: {each: 0xFFF}}
      222: {scopes: {each: 0xFFF}}
)";

std::string flapping(int first) {
  std::string text = kFlapping;
  const std::vector<std::string> names = {"FIRST", "A", "B", "C", "D"};
  for (std::size_t i = 0; i < names.size(); ++i)
    text.replace(text.find(names[i] + (i == 4 ? "]]" : "]")), names[i].size(),
                 std::to_string(first + static_cast<int>(i)));
  return text;
}

/// When each text came first, in minutes: exactly in the first ten hours.
std::map<std::string, int> course_of(Machine& machine, int minutes) {
  std::map<std::string, int> first;
  for (int minute = 0; minute < minutes;) {
    const int step = minute < 600 ? 1 : 10;
    machine.pass(std::chrono::minutes(step));
    minute += step;
    const std::string said = machine.findings();
    if (!said.empty()) first.try_emplace(said, minute);
  }
  for (const auto& [text, minute] : first) std::printf("| minute %d | %s", minute, text.c_str());
  return first;
}

TEST(LinkReplay, ALinkThatRecoversIsNamedAtItsSecondRecoveryAndFiveDaysBeforeItFails) {
  Machine machine(flapping(505), {"GPU-0"});
  const std::map<std::string, int> first = course_of(machine, 5 * 24 * 60 + 10);
  EXPECT_EQ(first, (std::map<std::string, int>{{"link_errors: link 14: 2 recoveries in 24 h\n", 70},
                                               {"link_errors: link 14: 3 recoveries in 24 h\n", 83},
                                               {"link_errors: link 14: 4 recoveries in 24 h\n", 500},
                                               {"links_down: link 14 is down\n", 5 * 24 * 60 + 10}}));
  EXPECT_EQ(machine.links_shown(), std::vector<std::string>{"14"});
}

TEST(LinkReplay, ARestartOfTheDaemonForgetsNoRecovery) {
  Machine machine(flapping(505), {"GPU-0"});
  for (const int minutes : {65, 10, 10}) {
    for (int minute = 0; minute < minutes; ++minute) machine.pass();
    machine.restart_judge();
  }
  machine.pass();
  EXPECT_EQ(machine.findings(), "link_errors: link 14: 3 recoveries in 24 h\n");
  for (int minute = 0; minute < 24 * 60; minute += 10) machine.pass(10min);
  EXPECT_EQ(machine.findings(), "") << "one recovery is left";
}

// It has no series before, and its first recovery counts all the same.
TEST(LinkReplay, ALinkThatBeginsToRecoverIsNamedAtItsSecondRecovery) {
  Machine machine(flapping(0), {"GPU-0"});
  machine.pass();
  EXPECT_EQ(machine.links_shown(), std::vector<std::string>{});
  const std::map<std::string, int> first = course_of(machine, 600);
  EXPECT_EQ(first.at("link_errors: link 14: 2 recoveries in 24 h\n"), 69);
  EXPECT_EQ(first.at("link_errors: link 14: 4 recoveries in 24 h\n"), 499);
}

// Azure/azurehpc-health-checks issue 162: an H100 PCIe has 12 of its chip's 18 links, by design.
constexpr const char* kByDesign = R"(
templates:
  pcie:
    nvlink: {count: 18, link: {state: active}, links: {4: {state: inactive}, 5: {state: inactive}, 10: {state: inactive},
             11: {state: inactive}, 16: {state: inactive}, 17: {state: inactive}}}
    fields: {91: 18, 164: {scopes: {each: 26562}}}
devices: [{uuid: GPU-0, like: pcie}, {uuid: GPU-1, like: pcie}]
)";

TEST(LinkReplay, LinksThatAreOffByDesignAreNoFault) {
  Machine machine(kByDesign, {"GPU-0", "GPU-1"});
  for (int minute = 0; minute < 24 * 60; minute += 10) {
    machine.pass(10min);
    ASSERT_EQ(machine.findings(0) + machine.findings(1), "") << minute;
  }
  EXPECT_EQ(machine.links_shown(), std::vector<std::string>{});
}

constexpr const char* kTroubled = R"(
devices:
  - uuid: GPU-0
    nvlink: {count: 18}
    fields:
      164: {scopes: {3: {steps: [[0, 53125], [600, 26562]]}, each: 53125}}
      165: {scopes: {5: {steps: [[0, active], [600, traffic_disabled]]}, each: active}}
      213: {scopes: {each: 0}}
      214: {scopes: {each: 0}}
      220: {scopes: {7: {steps: [[0, 0xFFF], [600, 0x308]]}, each: 0xFFF}}
      222: {scopes: {each: 0xFFF}}
)";

TEST(LinkReplay, ASlowOneAndOneWithBitErrorsAndOneWithoutTrafficAreNamed) {
  Machine machine(kTroubled, {"GPU-0"});
  for (int minute = 0; minute < 9; ++minute) machine.pass();
  EXPECT_EQ(machine.findings(), "");
  for (int minute = 0; minute < 8; ++minute) machine.pass();
  EXPECT_EQ(machine.findings(),
            "links_down: link 5 is down\n"
            "link_slow: link 3 runs at 2.6562e+10 of 5.3125e+10 bytes per second\n"
            "link_errors: link 7 has a bit error ratio of 3e-08 after forward error correction\n");
}

// The daemon has forgotten which link it was, but not how many there were.
TEST(LinkReplay, ALinkThatIsDownIsAFaultAfterARestartToo) {
  Machine machine(kTroubled, {"GPU-0"});
  for (int minute = 0; minute < 20; ++minute) machine.pass();
  machine.restart_judge();
  for (int minute = 0; minute < 4; ++minute) machine.pass();
  EXPECT_EQ(machine.findings().substr(0, 11), "links_down:");
}

}  // namespace
}  // namespace gpumeter
