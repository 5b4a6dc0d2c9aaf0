#include "exporter/health/judge.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/api/self_catalog.hpp"
#include "exporter/json/api.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter::health {
namespace {

using namespace std::chrono_literals;

struct Value {
  const MetricDescriptor* family;
  std::vector<Label> labels;  ///< beside the device's
  double value;
};

/// Devices whose series a test writes by hand.
class JudgeTest : public testing::Test {
 protected:
  static Labels labels_of(unsigned gpu, const std::string& model = "Card") {
    DeviceInfo info;
    info.uuid = "GPU-" + std::to_string(gpu);
    info.vendor = "nvidia";
    info.model = model;
    return {info, gpu, ""};
  }
  /// The device has these values and is up.
  void set(unsigned gpu, std::vector<Value> values) { values_[gpu] = std::move(values); }
  void machine(std::vector<Value> values) { machine_ = std::move(values); }

  /// Judges once a second for this time.
  const Report& after(std::chrono::seconds time) {
    for (; time > 0s; time -= 1s) {
      now_ += 1s;
      write();
      report_ = judge_->judge(store_, now_);
    }
    return report_;
  }
  /// "failed: xid_79 reboot, links_down reset" of the first device.
  static std::string text_of(const Report& report) {
    std::string text(to_string(report.devices.at(0).state));
    for (const Finding& finding : report.devices[0].findings) {
      text += (text.find(':') == std::string::npos ? ": " : ", ") + finding.reason + " " +
              std::string(to_string(finding.action));
    }
    return text;
  }
  std::string text_after(std::chrono::seconds time) { return text_of(after(time)); }
  std::string text_at_once() {
    write();
    return text_of(Judge(Judge::History::none).judge(store_, now_));
  }

  void write() {
    for (const auto& [gpu, values] : values_) {
      bool has_up = false;
      for (const Value& value : values) {
        series_.add(*value.family, labels_of(gpu, models_[gpu]).with(value.labels), value.value);
        has_up = has_up || value.family == &catalog::up;
      }
      if (!has_up) series_.add(catalog::up, labels_of(gpu, models_[gpu]), 1);
    }
    for (const Value& value : machine_) series_.add(*value.family, Labels(value.labels), value.value);
    series_.commit(now_);
  }

  Nanoseconds now_ = 1000s;
  Store store_;
  SeriesList series_{store_.attach("nvidia")};
  std::map<unsigned, std::vector<Value>> values_;
  std::map<unsigned, std::string> models_ = {{0, "Card"}, {1, "Card"}, {2, "Card"}, {3, "Card"}};
  std::vector<Value> machine_;
  std::optional<Judge> judge_{std::in_place};
  Report report_;
};

TEST_F(JudgeTest, AFamilyThatIsAbsentJudgesNothing) {
  set(0, {});
  EXPECT_EQ(text_after(1h), "ok");
  EXPECT_EQ(text_at_once(), "ok");
}

TEST_F(JudgeTest, AnIdleCardIsOk) {
  set(0, {{&catalog::pcie_link_lanes, {}, 1},
          {&catalog::pcie_link_max_lanes, {}, 16},
          {&catalog::pcie_link_generation, {}, 1},
          {&catalog::pcie_link_max_generation, {}, 5},
          {&catalog::utilization, {}, 0},
          {&catalog::clock, {{"clock", "graphics"}}, 345e6},
          {&catalog::clock_max, {{"clock", "graphics"}}, 1980e6},
          {&catalog::throttled, {{"cause", "power"}}, 0},
          {&catalog::fan_rpm, {{"fan", "0"}}, 0},
          {&catalog::fan_speed, {{"fan", "0"}}, 0},
          {&catalog::temperature, {{"sensor", "core"}}, 48},
          {&catalog::temperature_margin, {{"sensor", "core"}}, 40}});
  EXPECT_EQ(text_after(20min), "ok");
  EXPECT_EQ(text_at_once(), "ok");
}

TEST_F(JudgeTest, ABusyCardWithTheSameLinkIsDegraded) {
  set(0, {{&catalog::pcie_link_lanes, {}, 8},
          {&catalog::pcie_link_max_lanes, {}, 16},
          {&catalog::pcie_link_generation, {}, 5},
          {&catalog::pcie_link_max_generation, {}, 5},
          {&catalog::utilization, {}, 0.9}});
  EXPECT_EQ(text_after(60s), "ok");
  EXPECT_EQ(text_after(1s), "degraded: pcie_width drain");
  EXPECT_EQ(report_.devices[0].findings[0].text, "the PCIe link has 8 of 16 lanes while the GPU is busy");
  EXPECT_EQ(text_at_once(), "degraded: pcie_width drain");
}

TEST_F(JudgeTest, ThePowerLimitIsNoFault) {
  set(0, {{&catalog::throttled, {{"cause", "power"}}, 1},
          {&catalog::throttle_reason_active, {{"cause", "power"}, {"reason", "sw_power_cap"}}, 1},
          {&catalog::clock, {{"clock", "graphics"}}, 600e6},
          {&catalog::clock_max, {{"clock", "graphics"}}, 1980e6},
          {&catalog::utilization, {}, 1}});
  EXPECT_EQ(text_after(1h), "ok");
  EXPECT_EQ(text_at_once(), "ok");
}

TEST_F(JudgeTest, ErrorsOfThePastAreNoFault) {
  set(0, {{&catalog::memory_lifetime_errors, {{"severity", "uncorrected"}, {"location", "dram"}}, 12},
          {&catalog::memory_errors, {{"severity", "uncorrected"}, {"location", "dram"}}, 0},
          {&catalog::memory_errors, {{"severity", "corrected"}, {"location", "dram"}}, 5000},
          {&catalog::retired_pages, {{"cause", "double_bit"}}, 7},
          {&catalog::retired_pages_pending, {}, 0},
          {&catalog::remapped_rows, {{"cause", "uncorrected"}}, 3},
          {&catalog::pcie_replays, {}, 4000},
          {&catalog::pcie_errors, {{"severity", "fatal"}, {"kind", "any"}}, 2},
          {&catalog::interconnect_errors, {{"kind", "nvlink"}, {"error", "replay"}}, 90}});
  EXPECT_EQ(text_after(1h), "ok");
  EXPECT_EQ(text_at_once(), "ok");
}

TEST_F(JudgeTest, ErrorsSinceTheDriverWasLoadedCountAtTheFirstLook) {
  set(0, {{&catalog::memory_errors, {{"severity", "uncorrected"}, {"location", "dram"}}, 2},
          {&catalog::memory_errors, {{"severity", "uncorrected"}, {"location", "sram"}}, 1}});
  EXPECT_EQ(text_after(1s), "failed: memory_errors_uncorrected reset");
  EXPECT_EQ(report_.devices[0].findings[0].text, "3 uncorrected memory errors since the driver was loaded");
  EXPECT_EQ(report_.state, State::failed);
}

TEST_F(JudgeTest, AResetEndsErrorsSinceTheDriverWasLoaded) {
  set(0, {{&catalog::memory_errors, {{"severity", "uncorrected"}, {"location", "dram"}}, 2}});
  EXPECT_EQ(text_after(2h), "failed: memory_errors_uncorrected reset");
  machine({{&self_catalog::collector_released, {{"collector", "nvidia"}}, 1}});
  after(1s);
  machine({});
  EXPECT_EQ(text_after(1s), "ok");
  set(0, {{&catalog::memory_errors, {{"severity", "uncorrected"}, {"location", "dram"}}, 3}});
  EXPECT_EQ(text_after(1s), "failed: memory_errors_uncorrected reset");
  EXPECT_EQ(report_.devices[0].findings[0].value, 1);
}

TEST_F(JudgeTest, ASleepingCardIsOk) {
  set(0, {{&catalog::up, {}, 0}, {&catalog::suspended, {}, 1}});
  EXPECT_EQ(text_after(1min), "ok");
  set(0, {{&catalog::up, {}, 0}, {&catalog::suspended, {}, 0}});
  EXPECT_EQ(text_after(5s), "ok");
  EXPECT_EQ(text_after(1s), "failed: device_lost reboot");
}

TEST_F(JudgeTest, ACardWhoseDriverIsReleasedIsUnknown) {
  set(0, {{&catalog::up, {}, 0}});
  machine({{&self_catalog::collector_released, {{"collector", "nvidia"}}, 1}});
  EXPECT_EQ(text_after(1min), "unknown");
  EXPECT_EQ(report_.state, State::unknown);
  machine({{&self_catalog::collector_released, {{"collector", "nvidia"}}, 0}});
  EXPECT_EQ(text_after(1min), "failed: device_lost reboot");
}

TEST_F(JudgeTest, ACardThatWasNeverReadIsUnknown) {
  auto source = store_.attach("nvidia");
  const auto slot = source.add(catalog::info, labels_of(0));
  source.set(slot, 1);
  source.commit(now_);
  const Report report = judge_->judge(store_, now_);
  EXPECT_EQ(text_of(report), "unknown");
}

TEST_F(JudgeTest, AnXidIsKeptForAnHourAfterTheLastOne) {
  const auto count = [&](double xids) { set(0, {{&catalog::xid_errors, {{"xid", "79"}}, xids}}); };
  count(0);
  EXPECT_EQ(text_after(5s), "ok");
  count(1);
  EXPECT_EQ(text_after(40min), "failed: xid_79 reboot");
  count(2);
  EXPECT_EQ(text_after(1h), "failed: xid_79 reboot");
  EXPECT_EQ(report_.devices[0].findings[0].value, 2);
  EXPECT_EQ(report_.devices[0].findings[0].text, "XID 79: GPU has fallen off the bus");
  EXPECT_EQ(text_after(1s), "ok");
}

TEST_F(JudgeTest, AnXidBeforeTheFirstLookCounts) {
  set(0, {{&catalog::xid_errors, {{"xid", "48"}}, 1}});
  EXPECT_EQ(text_after(1s), "failed: xid_48 reset");
  EXPECT_EQ(text_at_once(), "failed: xid_48 reset");
}

TEST_F(JudgeTest, AnXidIsNewsAfterARestartForTheRestOfItsHour) {
  set(0, {{&catalog::xid_errors, {{"xid", "79"}}, 0}});
  after(1s);
  set(0, {{&catalog::xid_errors, {{"xid", "79"}}, 2}});
  EXPECT_EQ(text_after(1s), "failed: xid_79 reboot");
  after(30min);
  Judge successor;
  successor.resume(judge_->events());
  set(0, {{&catalog::xid_errors, {{"xid", "79"}}, 0}});  // the daemon counts from 0 again
  const auto judged_after = [&](std::chrono::seconds time) {
    for (; time > 0s; time -= 1s) {
      now_ += 1s;
      write();
      report_ = successor.judge(store_, now_);
    }
    return text_of(report_);
  };
  EXPECT_EQ(judged_after(1s), "failed: xid_79 reboot");
  EXPECT_EQ(report_.devices[0].findings[0].value, 2);
  EXPECT_EQ(judged_after(29min), "failed: xid_79 reboot");
  EXPECT_EQ(judged_after(1min), "ok");
  EXPECT_TRUE(successor.events().empty());
}

// Gaudi's and Trainium's drivers count since they were loaded.
TEST_F(JudgeTest, ResetsBeforeTheFirstLookAreNoNews) {
  const auto resets = [&](double count) { set(0, {{&catalog::events, {{"event", "reset"}}, count}}); };
  resets(3);
  EXPECT_EQ(text_after(1s), "ok");
  EXPECT_EQ(text_at_once(), "ok");
  resets(4);
  EXPECT_EQ(text_after(1s), "degraded: device_reset restart_job");
  Judge successor;
  successor.resume(judge_->events());
  now_ += 1s;
  write();
  report_ = successor.judge(store_, now_);
  EXPECT_EQ(text_of(report_), "degraded: device_reset restart_job");
  EXPECT_EQ(report_.devices[0].findings[0].value, 1);
}

TEST_F(JudgeTest, XidsOfProgramsAreNoFault) {
  set(0, {{&catalog::xid_errors, {{"xid", "13"}}, 1},
          {&catalog::xid_errors, {{"xid", "31"}}, 2},
          {&catalog::xid_errors, {{"xid", "43"}}, 2},
          {&catalog::xid_errors, {{"xid", "63"}}, 1}});
  EXPECT_EQ(text_after(1min), "ok");
}

TEST_F(JudgeTest, AReleaseEndsEvents) {
  set(0, {{&catalog::xid_errors, {{"xid", "48"}}, 1}});
  EXPECT_EQ(text_after(1s), "failed: xid_48 reset");
  machine({{&self_catalog::collector_released, {{"collector", "nvidia"}}, 1}});
  EXPECT_EQ(text_after(1s), "unknown");
  machine({{&self_catalog::collector_released, {{"collector", "nvidia"}}, 0}});
  EXPECT_EQ(text_after(1s), "ok");
}

// Only a reset ends what needs a reset; the program of XID 94 has ended anyway.
TEST_F(JudgeTest, AProofOfAResetEndsWhatItClears) {
  for (const auto& proof : {std::pair(&catalog::events, Label{"event", "reset"}),
                            std::pair(&catalog::events, Label{"event", "returned"}),
                            std::pair(&catalog::recovery_action, Label{"action", "none"})}) {
    const auto with = [&](double xids, double proofs) {
      set(0, {{&catalog::xid_errors, {{"xid", "48"}}, xids},
              {&catalog::xid_errors, {{"xid", "79"}}, xids},
              {&catalog::memory_errors, {{"severity", "uncorrected"}}, xids},
              {proof.first, {proof.second}, proofs}});
    };
    judge_.emplace();
    with(0, 0);
    after(1s);
    with(1, 0);
    EXPECT_EQ(text_after(5s), "failed: memory_errors_uncorrected reset, xid_48 reset, xid_79 reboot");
    with(1, 1);
    EXPECT_EQ(text_after(1s).find("xid"), std::string::npos) << proof.second.value;
    EXPECT_EQ(text_after(1s).find("memory_errors"), std::string::npos) << proof.second.value;
    with(2, 1);
    EXPECT_NE(text_after(1s).find("xid_48"), std::string::npos) << "a new one is news";
  }
}

TEST_F(JudgeTest, AResetWhoseSeriesComesWithItIsNewsAndEndsWhatItClears) {
  const auto with = [&](double resets) {
    set(0, {{&catalog::events, {{"event", "wedged"}}, 1}, {&catalog::events, {{"event", "reset"}}, resets}});
    return text_after(1s);
  };
  judge_.emplace();
  EXPECT_EQ(with(5), "failed: recovery_action reset") << "the driver counts resets since it was loaded";
  judge_.emplace();
  set(0, {});
  EXPECT_EQ(text_after(3min), "ok");
  set(0, {{&catalog::events, {{"event", "wedged"}}, 1}});
  EXPECT_EQ(text_after(1s), "failed: recovery_action reset");
  EXPECT_EQ(with(1), "degraded: device_reset restart_job");
}

TEST_F(JudgeTest, AnAdvisoryIsInformationAndNoFault) {
  models_[0] = "NVIDIA B200";
  const auto driver = [&](const char* version, double utilization = 0) {
    set(0, {{&catalog::info, {{"driver_version", version}}, 1},
            {&catalog::utilization, {}, utilization},
            {&catalog::workload_share, {{"kind", "unattributed"}, {"workload", "unattributed"}}, 1}});
    EXPECT_EQ(text_after(11min), "ok");
    std::string names;
    for (const Advice& advice : report_.devices[0].advice) names += advice.name + " ";
    return names;
  };
  EXPECT_EQ(driver("570.133.20"), "");
  now_ += std::chrono::hours(61 * 24);
  EXPECT_EQ(driver("570.133.20"), "hang_after_66_days ");
  EXPECT_EQ(driver("580.126.09"), "security_update ");
  EXPECT_EQ(driver("580.126.09", 0.95), "utilization_latched security_update ");
  EXPECT_EQ(driver("595.80.01", 0.95), "");
  EXPECT_EQ(driver("590.48.01"), "links_inactive_after_xid_149 ");
  models_[0] = "NVIDIA GH200 480GB";  // of a sensor, with every driver
  EXPECT_EQ(driver("550.54.15"), "power_scope ");
}

TEST_F(JudgeTest, SeveralReasonsStandBesideEachOtherTheWorstFirst) {
  set(0, {{&catalog::row_remap_pending, {}, 1},
          {&catalog::xid_errors, {{"xid", "48"}}, 1},
          {&catalog::xid_errors, {{"xid", "79"}}, 1},
          {&catalog::interconnect_links_up, {{"kind", "nvlink"}}, 9}});
  for (const unsigned equal : {1U, 2U})
    set(equal, {{&catalog::interconnect_links_up, {{"kind", "nvlink"}}, 18}});
  EXPECT_EQ(text_after(121s),
            "failed: links_down reset, xid_48 reset, xid_79 reboot, row_remap_pending reset");
  EXPECT_EQ(report_.devices[0].findings[0].text, "9 of 18 links to other GPUs are up");
}

TEST_F(JudgeTest, ACardWithoutABridgeIsOkAndOneThatLostItsLinksIsNot) {
  const auto up = [&](double links) {
    set(0, {{&catalog::interconnect_links, {{"kind", "nvlink"}}, 12},
            {&catalog::interconnect_links_up, {{"kind", "nvlink"}}, links}});
  };
  up(0);
  EXPECT_EQ(text_after(1h), "ok");
  up(12);
  EXPECT_EQ(text_after(1s), "ok");
  up(0);
  EXPECT_EQ(text_after(121s), "failed: links_down reset");
}

TEST_F(JudgeTest, AResetThroughTheBusAndAnUnknownRecoveryActionHaveTheirActions) {
  set(0, {{&catalog::recovery_action, {{"action", "bus_reset"}}, 1}});
  EXPECT_EQ(text_after(1s), "failed: recovery_action reset");
  set(0, {{&catalog::recovery_action, {{"action", "system_reboot"}}, 1}});
  EXPECT_EQ(text_after(1s), "failed: recovery_action reboot");
  set(0, {{&catalog::recovery_action, {{"action", "none"}}, 0},
          {&catalog::recovery_action, {{"action", "other"}}, 1}});
  EXPECT_EQ(text_after(1s), "failed: recovery_action reboot");
}

TEST_F(JudgeTest, ABankThatWaitsForAResetAndAnSramAboveItsThresholdAreFaults) {
  const auto banks = [&](double pending, double above_threshold) {
    set(0, {{&catalog::remapped_banks, {{"state", "active"}}, 3},
            {&catalog::remapped_banks, {{"state", "pending"}}, pending},
            {&catalog::sram_threshold_exceeded, {}, above_threshold}});
    return text_after(1s);
  };
  EXPECT_EQ(banks(0, 0), "ok") << "banks that are remapped are repaired";
  EXPECT_EQ(banks(1, 0), "degraded: row_remap_pending reset");
  EXPECT_EQ(banks(0, 1), "failed: memory_unrepairable replace");
}

// An H100 PCIe or NVL has 12 of the chip's 18 links.
TEST_F(JudgeTest, LinksThatACardNeverHadAreNoFault) {
  const auto up = [&](unsigned gpu, double links) {
    set(gpu, {{&catalog::interconnect_links, {{"kind", "nvlink"}}, 18},
              {&catalog::interconnect_links_up, {{"kind", "nvlink"}}, links}});
  };
  up(0, 12);
  EXPECT_EQ(text_after(1h), "ok");
  EXPECT_EQ(text_at_once(), "ok");
  up(0, 11);
  EXPECT_EQ(text_after(121s), "failed: links_down reset");
  EXPECT_EQ(report_.devices[0].findings[0].text, "11 of 12 links to other GPUs are up");
  up(0, 12);
  EXPECT_EQ(text_after(1s), "ok");
}

TEST_F(JudgeTest, LinksThatWereLostBeforeARestartOfTheDaemonAreAFault) {
  const auto up = [&](double links) {
    set(0, {{&catalog::interconnect_links_up, {{"kind", "nvlink"}}, links}});
  };
  up(12);
  after(1s);
  Events saved = judge_->events();
  for (const double left : {11.0, 0.0}) {
    Judge successor;
    successor.resume(saved);
    up(left);
    for (int second = 0; second <= 120; ++second) {
      now_ += 1s;
      write();
      report_ = successor.judge(store_, now_);
    }
    EXPECT_EQ(text_of(report_), "failed: links_down reset") << left;
    saved = successor.events();
  }
  machine({{&self_catalog::collector_released, {{"collector", "nvidia"}}, 1}});
  after(1s);
  EXPECT_TRUE(judge_->events().empty()) << "the driver is closed, and the bridge may go";
}

TEST_F(JudgeTest, MostCardsOfTheModelSayHowManyLinksAreUsual) {
  const auto up = [&](unsigned gpu, double links) {
    set(gpu, {{&catalog::interconnect_links_up, {{"kind", "nvlink"}}, links}});
  };
  up(0, 16);
  up(1, 18);
  EXPECT_EQ(text_at_once(), "ok") << "one of two may be the better one";
  up(2, 18);
  EXPECT_EQ(text_at_once(), "failed: links_down reset") << "also if it never had more itself";
  models_[1] = models_[2] = "Other";
  EXPECT_EQ(text_at_once(), "ok");
}

TEST_F(JudgeTest, AThrottlingPeakIsNoFault) {
  const auto thermal = [&](double active) {
    set(0, {{&catalog::throttled, {{"cause", "thermal"}}, active}});
  };
  thermal(0);
  EXPECT_EQ(text_after(60s), "ok");
  thermal(1);
  EXPECT_EQ(text_after(10s), "ok");
  thermal(0);
  EXPECT_EQ(text_after(60s), "ok");
  thermal(1);
  EXPECT_EQ(text_after(30s), "degraded: thermal_throttling drain");
}

TEST_F(JudgeTest, CardsOfOneModelAreCompared) {
  const auto ecc = [](double enabled) {
    return std::vector<Value>{{&catalog::mode, {{"mode", "ecc"}, {"state", "enabled"}}, enabled}};
  };
  for (const unsigned gpu : {1U, 2U}) set(gpu, ecc(1));
  set(0, ecc(0));
  models_[3] = "Another card";
  set(3, ecc(0));
  EXPECT_EQ(text_after(61s), "degraded: ecc_mode_differs reset");
  EXPECT_EQ(report_.devices[1].state, State::ok);
  EXPECT_EQ(report_.devices[3].state, State::ok);
}

TEST_F(JudgeTest, DriverVersionsOfOneVendorAreCompared) {
  const auto driver = [](const std::string& version) {
    return std::vector<Value>{
        {&catalog::info, {{"driver_version", version}, {"pci_address", "0000:17:00.0"}}, 1}};
  };
  for (const unsigned gpu : {1U, 2U}) set(gpu, driver("595.1"));
  set(0, driver("590.2"));
  EXPECT_EQ(text_after(61s), "degraded: driver_version_differs reboot");
  EXPECT_EQ(report_.devices[1].state, State::ok);
  EXPECT_EQ(report_.devices[0].pci_address, "0000:17:00.0");
}

TEST_F(JudgeTest, AGpuThatIsExpectedAndNotReadBelongsToTheMachine) {
  set(0, {});
  set(1, {{&catalog::up, {}, 0}});
  machine({{&self_catalog::devices_expected, {{"vendor", "any"}}, 3},
           {&self_catalog::devices_expected, {{"vendor", "amd"}}, 0}});
  after(61s);
  ASSERT_EQ(report_.machine.size(), 1U);
  EXPECT_EQ(report_.machine[0].reason, "devices_missing");
  EXPECT_EQ(report_.machine[0].text, "1 of 3 expected GPUs are read");
  EXPECT_EQ(report_.state, State::failed);

  machine({{&self_catalog::devices_expected, {{"vendor", "any"}}, 2}});
  set(1, {{&catalog::up, {}, 0}, {&catalog::suspended, {}, 1}});
  EXPECT_TRUE(after(61s).machine.empty()) << "a sleeping GPU is there";
}

TEST_F(JudgeTest, AMachineWithoutGpusIsUnknown) {
  EXPECT_EQ(judge_->judge(store_, now_).state, State::unknown);
}

TEST_F(JudgeTest, ADeviceThatIsForgottenIsNotJudged) {
  set(0, {});
  EXPECT_EQ(after(1s).devices.size(), 1U);
  values_.clear();
  EXPECT_EQ(after(1s).devices.size(), 0U);
}

/// A device whose reads can fail, as those of a lane: the slot stays, without a value.
class JudgeReadsTest : public JudgeTest {
 protected:
  JudgeReadsTest() {
    set(0, {});
    is_pending(1);
  }
  void is_pending(double value) { device_.set(pending_, value); }
  void fails() { device_.miss(pending_, ReadStatus::failed); }
  std::string for_time(std::chrono::seconds time) {
    for (; time > 0s; time -= 1s) {
      device_.commit(now_);
      after(1s);
    }
    return text_of(report_);
  }

  static constexpr const char* kPending = "degraded: row_remap_pending reset";
  Source device_ = store_.attach("nvidia");
  Source::Slot pending_ = device_.add(catalog::row_remap_pending, labels_of(0));
};

TEST_F(JudgeReadsTest, AFailedReadIsNoNewsForTwoMinutes) {
  for (const auto absent : {1s, 119s, 120s}) {
    is_pending(1);
    EXPECT_EQ(for_time(1s), kPending);
    const Nanoseconds since = report_.devices[0].findings[0].since;
    fails();
    EXPECT_EQ(for_time(absent), kPending) << absent.count();
    is_pending(1);
    EXPECT_EQ(for_time(1s), kPending);
    EXPECT_EQ(report_.devices[0].findings[0].since, since) << absent.count();
  }
  fails();
  EXPECT_EQ(for_time(121s), "ok");
}

TEST_F(JudgeReadsTest, AGoodValueAfterAFailedReadEndsTheReason) {
  EXPECT_EQ(for_time(1s), kPending);
  fails();
  EXPECT_EQ(for_time(5s), kPending);
  is_pending(0);
  EXPECT_EQ(for_time(1s), "ok");
  fails();
  EXPECT_EQ(for_time(5s), "ok");
}

TEST_F(JudgeReadsTest, ALostOrSleepingDeviceHasNoLastValue) {
  for (const bool sleeps : {false, true}) {
    set(0, {});
    is_pending(1);
    EXPECT_EQ(for_time(1s), kPending);
    fails();
    set(0, {{&catalog::up, {}, 0}, {&catalog::suspended, {}, sleeps ? 1.0 : 0.0}});
    EXPECT_EQ(for_time(1s), sleeps ? "ok" : kPending);
    EXPECT_EQ(for_time(6s), sleeps ? "ok" : "failed: device_lost reboot");
    set(0, {});
    EXPECT_EQ(for_time(1s), "ok") << "the value from before does not come back";
  }
}

TEST_F(JudgeReadsTest, OnePassWithoutAnyReadIsNoNews) {
  EXPECT_EQ(for_time(1s), kPending);
  const Nanoseconds since = report_.devices[0].findings[0].since;
  fails();
  set(0, {{&catalog::up, {}, 0}});
  EXPECT_EQ(for_time(3s), kPending);
  set(0, {});
  is_pending(1);
  EXPECT_EQ(for_time(1s), kPending);
  EXPECT_EQ(report_.devices[0].findings[0].since, since);
}

TEST_F(JudgeReadsTest, ADeviceThatIsUpAndAsleepHasNoLastValue) {
  EXPECT_EQ(for_time(1s), kPending);
  fails();
  set(0, {{&catalog::suspended, {}, 1}});
  EXPECT_EQ(for_time(1s), "ok");
}

TEST_F(JudgeReadsTest, AFailedReadDoesNotRestartAHoldTime) {
  const Source::Slot margin =
      device_.add(catalog::temperature_margin, labels_of(0).with({{"sensor", "core"}}));
  is_pending(0);
  device_.set(margin, 3);
  EXPECT_EQ(for_time(30s), "ok");
  device_.miss(margin, ReadStatus::failed);
  EXPECT_EQ(for_time(1s), "ok");
  device_.set(margin, 3);
  EXPECT_EQ(for_time(29s), "ok");
  EXPECT_EQ(for_time(1s), "degraded: temperature_near_limit drain");
}

TEST_F(JudgeReadsTest, OneOfTwoSensorsThatFailsIsNoNews) {
  const auto sensor = [](const char* name) { return labels_of(0).with({{"sensor", name}}); };
  const Source::Slot core = device_.add(catalog::temperature_margin, sensor("core"));
  const Source::Slot memory = device_.add(catalog::temperature_margin, sensor("memory"));
  is_pending(0);
  device_.set(core, 20);
  device_.set(memory, 3);
  EXPECT_EQ(for_time(61s), "degraded: temperature_near_limit drain");
  device_.miss(memory, ReadStatus::failed);
  EXPECT_EQ(for_time(60s), "degraded: temperature_near_limit drain");
}

TEST_F(JudgeReadsTest, AnotherDeviceThatComesLeavesTheLastValueInForce) {
  EXPECT_EQ(for_time(1s), kPending);
  fails();
  auto other = store_.attach("nvidia");
  other.set(other.add(catalog::row_remap_pending, labels_of(1)), 0);
  other.commit(now_);
  set(1, {});
  EXPECT_EQ(for_time(1s), kPending);
  EXPECT_EQ(report_.devices[1].state, State::ok);
  device_.drop(pending_);
  EXPECT_EQ(for_time(1s), "ok") << "a series that is gone has no last value";
}

constexpr const char* kJson = R"json({"devices":[
{"gpu":"0","uuid":"GPU-0","vendor":"nvidia","model":"Card","pci_address":"","state":"failed","since_seconds":60.5,"reasons":[{"reason":"row_remap_failed","severity":"failed","action":"replace","text":"a memory row could not be remapped: no spare rows are left","value":1,"since_seconds":60.5,"alert":"GpuRowRemapFailed","runbook":"gpurowremapfailed"}]}
],"machine":[{"reason":"devices_missing","severity":"failed","action":"reboot","text":"1 of 2 expected GPUs are read (nvidia)","value":1,"since_seconds":60.5,"alert":"GpuExpectedMissing","runbook":"gpuexpectedmissing"}],"state":"failed"}
)json";

TEST_F(JudgeTest, IsShownAsJson) {
  set(0, {{&catalog::row_remap_failed, {}, 1}});
  machine({{&self_catalog::devices_expected, {{"vendor", "nvidia"}}, 2}});
  after(61s);
  EXPECT_EQ(health_json(report_, now_ + 500ms), kJson);
}

}  // namespace
}  // namespace gpumeter::health
