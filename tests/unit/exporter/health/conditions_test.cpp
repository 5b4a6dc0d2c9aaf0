// Each condition by a simulated event of its own: the state, the reasons, and when they come and go.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/api/self_catalog.hpp"
#include "collectors/simulated/collector.hpp"
#include "daemon/lane/device_session.hpp"
#include "exporter/health/judge.hpp"
#include "exporter/store/series_list.hpp"
#include "tests/fakes/fake_clock.hpp"

namespace gpumeter {
namespace {

using namespace std::chrono_literals;
using health::DeviceHealth;
using health::State;

constexpr SamplingIntervals kIntervals{1s, 10s, 60s};

/// A machine of simulated GPUs whose time passes as fast as it is asked to. The first GPU has the event:
/// what the simulated driver has, or "log:LABEL", which the kernel's log counts once, at `begin`.
class Machine {
 public:
  Machine(const std::string& verb, int begin, int lasts) : begin_(begin) {
    const bool is_of_log = verb.starts_with("log:");
    if (is_of_log) label_ = verb.substr(4);
    const std::string event = (is_of_log ? "throttle" : verb) + " 0 after " + std::to_string(begin) +
                              "s for " + std::to_string(lasts) + "s";
    collector_ = std::move(*simulated::open_simulated(
        {"", "", &clock_, {{"devices", {"3"}}, {"duty", {"0.9"}}, {"events", {event}}}}));
    const Discovery found = *collector_->discover();
    for (const DeviceInfo& info : found.devices) {
      DeviceIdentity identity{"simulated", static_cast<unsigned>(devices_.size()), info, ""};
      devices_.push_back({info, std::make_unique<DeviceSession>(collector_->device(info), identity,
                                                                DeviceLabels{}, store_, clock_)});
    }
    for (Device& device : devices_) open(device);
    // The other GPUs do not change, so one look at them is enough.
    for (const Tier tier : {Tier::once, Tier::normal, Tier::slow}) run(devices_[0], tier);
  }

  /// The time passes. Returns the health of the first GPU.
  DeviceHealth pass(int seconds) {
    clock_.advance(std::chrono::seconds(seconds));
    seconds_ += seconds;
    Device& first = devices_[0];
    if (!first.is_up && seconds_ % 10 == 0) open(first);
    run(first, Tier::fast);
    if (seconds_ % 10 == 0) run(first, Tier::normal);
    if (seconds_ % 60 == 0) run(first, Tier::slow);
    publish();
    return judge_.judge(*store_, clock_.monotonic()).devices.at(0);
  }
  int seconds() const { return seconds_; }

 private:
  struct Device {
    DeviceInfo info;
    std::unique_ptr<DeviceSession> session;
    bool is_up = false;
  };

  void open(Device& device) {
    device.is_up = bool(device.session->attach(device.info));
    for (const Tier tier : kTiers) run(device, tier);
  }
  void run(Device& device, Tier tier) {
    if (!device.is_up) return;
    if (device.session->run(tier, kIntervals, nullptr) == PassOutcome::gone) {
      device.session->lose();
      device.is_up = false;
    }
  }
  void publish() {
    for (Device& device : devices_) {
      const DeviceIdentity& identity = device.session->identity();
      const bool is_read = device.is_up && !device.session->is_silent();
      own_.add(catalog::up, Labels(identity.info, identity.index, ""), is_read ? 1 : 0);
      const auto failed = device.session->errors()[static_cast<std::size_t>(ReadStatus::failed)];
      own_.add(
          self_catalog::read_errors,
          Labels({{"collector", "simulated"}, {"gpu", std::to_string(identity.index)}, {"status", "failed"}}),
          static_cast<double>(failed));
    }
    if (!label_.empty()) {
      const DeviceIdentity& first = devices_[0].session->identity();
      own_.add(catalog::events, Labels(first.info, first.index, "").with({{"event", label_}}),
               seconds_ >= begin_ ? 1 : 0);
    }
    own_.commit(clock_.monotonic());
  }

  FakeClock clock_;
  std::shared_ptr<Store> store_ = std::make_shared<Store>();
  std::unique_ptr<Collector> collector_;
  std::vector<Device> devices_;
  SeriesList own_{store_->attach("simulated")};
  health::Judge judge_;
  int seconds_ = 0;
  const int begin_;
  std::string label_;  ///< of gpu_events_total
};

struct Case {
  const char* verb;
  int lasts;  ///< seconds
  State state;
  std::vector<std::string> reasons;  ///< with severity and action, sorted
  bool stays = false;                ///< until the driver is closed
};

const Case kCases[] = {
    {"lose", 60, State::failed, {"device_lost failed reboot"}},  // its return ends its XID 79
    {"reads", 60, State::failed, {"device_lost failed reboot", "reads_failing failed reset"}},
    {"xid:79", 1, State::failed, {"xid_79 failed reboot"}},
    {"xid:48", 1, State::failed, {"xid_48 failed reset"}},
    {"xid:94", 1, State::degraded, {"xid_94 degraded restart_job"}},
    {"xid:1234", 1, State::degraded, {"xid_other degraded none"}},
    {"xid:31", 1, State::ok, {}},
    {"xid:63", 1, State::ok, {}},
    {"recovery:reset", 120, State::failed, {"recovery_action failed reset"}},
    {"recovery:reboot", 120, State::failed, {"recovery_action failed reboot"}},
    {"recovery:drain_p2p", 120, State::failed, {"recovery_action failed drain"}},
    {"recovery:drain_and_reset", 120, State::failed, {"recovery_action failed reset"}},
    {"ecc", 120, State::failed, {"memory_errors_uncorrected failed reset"}, true},
    {"corrected", 120, State::degraded, {"memory_errors_corrected degraded none"}},
    {"remap-failure", 120, State::failed, {"row_remap_failed failed replace"}},
    {"remap", 120, State::degraded, {"row_remap_pending degraded reset"}},
    {"unrepairable", 120, State::failed, {"memory_unrepairable failed replace"}},
    {"repair", 120, State::degraded, {"repair_pending degraded reset"}},
    {"retirement", 120, State::degraded, {"retired_pages_pending degraded reset"}},
    {"links", 240, State::failed, {"links_down failed reset"}},
    {"link-errors", 120, State::degraded, {"link_errors degraded drain"}},
    {"fabric", 120, State::failed, {"fabric_failed failed reboot"}},
    {"fabric-health", 120, State::degraded, {"fabric_unhealthy degraded drain"}},
    {"pcie-width", 500, State::degraded, {"pcie_width degraded drain"}},
    {"pcie-speed", 500, State::degraded, {"pcie_speed degraded drain"}},
    {"pcie-fatal", 120, State::failed, {"pcie_fatal failed reboot"}},
    {"pcie-replays", 240, State::degraded, {"pcie_replays degraded drain"}},
    {"overheat",
     120,
     State::degraded,
     {"temperature_near_limit degraded drain", "thermal_throttling degraded drain"}},
    {"slowdown", 120, State::degraded, {"hardware_throttling degraded drain"}},
    {"brake", 120, State::degraded, {"power_brake degraded drain"}},
    {"reliability", 120, State::degraded, {"reliability_throttling degraded drain"}},
    {"throttle", 600, State::ok, {}},
    {"fan", 120, State::degraded, {"fan_stopped degraded replace"}},
    {"clocks", 500, State::degraded, {"clocks_low degraded reset"}},
    {"memory", 1000, State::degraded, {"memory_nearly_full degraded none"}},
    {"ecc-mode", 240, State::degraded, {"ecc_mode_differs degraded reset"}},
    {"hardware", 120, State::degraded, {"hardware_errors degraded reset"}, true},
    {"reset", 1, State::degraded, {"device_reset degraded restart_job"}},
    {"log:off_bus", 1, State::failed, {"device_lost failed reboot"}},
    {"log:reset_failed", 1, State::failed, {"recovery_action failed reboot"}},
    {"log:wedged", 1, State::failed, {"recovery_action failed reset"}},
    {"log:repeated_xid", 1, State::degraded, {"xid_repeated degraded drain"}, true},
    {"log:engine_reset", 1, State::ok, {}},
};

/// What an event did to the health.
struct Course {
  std::set<std::string> reasons;
  std::optional<int> found;  ///< seconds from the event's beginning to a state other than ok
  std::optional<int> gone;   ///< seconds from the event's end to ok
  State worst = State::ok;
};

Course course_of(const Case& one) {
  constexpr int kBegin = 400;  // the means of 5 minutes have settled
  constexpr int kPatience = 2 * 3600;
  Machine machine(one.verb, kBegin, one.lasts);
  Course course;
  const int end = kBegin + one.lasts;
  const bool is_quiet = one.state == State::ok;
  while (machine.seconds() < end + (is_quiet ? 120 : kPatience)) {
    const bool is_near = machine.seconds() >= kBegin - 10 && machine.seconds() < end + 60;
    const DeviceHealth health = machine.pass(is_near ? 1 : 10);
    if (machine.seconds() < kBegin) {
      EXPECT_EQ(health.state, State::ok) << machine.seconds();
    }
    for (const health::Finding& finding : health.findings) {
      course.reasons.insert(finding.reason + " " + std::string(to_string(finding.severity)) + " " +
                            std::string(to_string(finding.action)));
    }
    course.worst = std::max(course.worst, health.state);
    if (health.state != State::ok && !course.found) course.found = machine.seconds() - kBegin;
    if (health.state != State::ok) course.gone.reset();
    if (health.state == State::ok && course.found && !course.gone) course.gone = machine.seconds() - end;
    if (course.gone && machine.seconds() > end + 120) break;
  }
  return course;
}

class ConditionsTest : public testing::TestWithParam<Case> {};

TEST_P(ConditionsTest, ComesAndGoesWithItsEvent) {
  const Case& one = GetParam();
  const Course course = course_of(one);
  std::string reasons;
  for (const std::string& reason : course.reasons) reasons += (reasons.empty() ? "" : ", ") + reason;
  std::printf("| %s | %s | %s | %d s | %d s |\n", one.verb, std::string(to_string(course.worst)).c_str(),
              reasons.c_str(), course.found.value_or(-1), course.gone.value_or(-1));
  EXPECT_EQ(course.worst, one.state);
  EXPECT_EQ(course.reasons, std::set<std::string>(one.reasons.begin(), one.reasons.end()));
  EXPECT_EQ(course.gone.has_value(), one.state != State::ok && !one.stays);
}

INSTANTIATE_TEST_SUITE_P(Simulated, ConditionsTest, testing::ValuesIn(kCases), [](const auto& each) {
  std::string name = each.param.verb;
  std::ranges::replace_if(
      name, [](char c) { return c == ':' || c == '-' || c == '_'; }, 'X');
  return name;
});

// Every reason is produced by an event above, by one of the tests of exporter/health, or needs another
// driver.
TEST(Conditions, EveryReasonHasItsEvent) {
  std::set<std::string> reasons = {"devices_missing", "driver_version_differs", "link_slow"};
  for (const Case& one : kCases) {
    for (const std::string& reason : one.reasons) reasons.insert(reason.substr(0, reason.find(' ')));
  }
  std::set<std::string> missing;
  for (const health::Condition& condition : health::all_conditions()) {
    const std::string reason(condition.reason);
    if (!reasons.contains(reason) && !reason.starts_with("xid_")) missing.insert(reason);
  }
  EXPECT_EQ(missing, std::set<std::string>());
}

}  // namespace
}  // namespace gpumeter

namespace gpumeter::health {
namespace {

TEST(ConditionTable, EveryRowIsComplete) {
  for (const Condition& condition : all_conditions()) {
    SCOPED_TRACE(std::string(condition.reason));
    EXPECT_FALSE(condition.text.empty());
    EXPECT_TRUE(condition.alert.starts_with("Gpu"));
    EXPECT_NE(condition.terms[0].reading.family, nullptr);
    for (const Term& term : condition.terms) {
      const bool looks_back = term.over != Over::now || term.compare == Compare::below_usual;
      EXPECT_EQ(looks_back, term.window > std::chrono::seconds(0));
      EXPECT_FALSE(term.over == Over::rise && term.reading.family->type != MetricType::counter);
      EXPECT_FALSE(term.over == Over::event && term.reading.family->type != MetricType::counter);
    }
  }
}

TEST(ConditionTable, VariantsOfAReasonHaveOneAlert) {
  std::map<std::string_view, std::string_view> alerts;
  for (const Condition& condition : all_conditions()) {
    EXPECT_EQ(alerts.try_emplace(condition.reason, condition.alert).first->second, condition.alert);
  }
}

TEST(ConditionTable, SaysItsTestInWords) {
  EXPECT_EQ(test_text(conditions()[0]), "gpu_up < 1 and highest gpu_suspended < 1");
  EXPECT_EQ(runbook_of(conditions()[0]), "gpulost");
}

TEST(XidTable, HasEachCodeOnceInOrder) {
  int last = 0;
  for (const events::Xid& xid : events::kXids) {
    const int code = xid.code == "other" ? 10000 : std::stoi(std::string(xid.code));
    EXPECT_GT(code, last);
    last = code;
  }
}

TEST(XidTable, ACodeThatNeedsNobodyIsNoFinding) {
  std::set<std::string> reasons;
  for (const Condition& condition : all_conditions()) reasons.insert(std::string(condition.reason));
  for (const events::Xid& xid : events::kXids) {
    SCOPED_TRACE(std::string(xid.code));
    const bool is_finding = xid.severity != Severity::none;
    EXPECT_EQ(is_finding && xid.has_series, reasons.contains("xid_" + std::string(xid.code)));
    EXPECT_FALSE(xid.kind == events::XidClass::noise && is_finding);
    EXPECT_FALSE(xid.kind == events::XidClass::immediate && !is_finding);
  }
}

}  // namespace
}  // namespace gpumeter::health
