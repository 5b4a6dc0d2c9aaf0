#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/log.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/health/judge.hpp"
#include "exporter/health/report.hpp"
#include "exporter/store/series_list.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/walked.hpp"

namespace gpumeter {
namespace {

using namespace std::chrono_literals;

class HealthTest : public testing::Test {
 protected:
  static Labels labels() {
    DeviceInfo info;
    info.uuid = "GPU-0";
    info.vendor = "nvidia";
    info.model = "Card";
    return {info, 0, ""};
  }
  void device(double remap_failed) {
    device_.add(catalog::up, labels(), 1);
    device_.add(catalog::row_remap_failed, labels(), remap_failed);
    device_.commit(clock_.monotonic());
  }
  std::shared_ptr<Part> opened() {
    return health::kPart.open({health::kPart.name, store_, machine_, clock_, log_, paths_});
  }
  /// The lines of gpu_health and gpu_health_reason.
  std::string judged() {
    clock_.advance(1s);
    part_->turn(clock_.monotonic());
    const std::string lines = walked(store_);
    return lines.substr(0, lines.find("gpu_row_remap_failed"));
  }

  FakeClock clock_;
  Store store_;
  SeriesList device_{store_.attach("nvidia")};
  Log log_{clock_, {LogLevel::info, LogFormat::logfmt}};
  const Paths paths_;
  Machine machine_;
  std::shared_ptr<Part> part_ = opened();
};

constexpr const char* kFailed =
    R"(gpu_health{gpu="0",uuid="GPU-0",vendor="nvidia",model="Card",state="ok"} 0
gpu_health{gpu="0",uuid="GPU-0",vendor="nvidia",model="Card",state="degraded"} 0
gpu_health{gpu="0",uuid="GPU-0",vendor="nvidia",model="Card",state="failed"} 1
gpu_health{gpu="0",uuid="GPU-0",vendor="nvidia",model="Card",state="unknown"} 0
gpu_health_reason{gpu="0",uuid="GPU-0",vendor="nvidia",model="Card",reason="row_remap_failed",severity="failed",action="replace"} 1
)";
constexpr const char* kOk = R"(gpu_health{gpu="0",uuid="GPU-0",vendor="nvidia",model="Card",state="ok"} 1
gpu_health{gpu="0",uuid="GPU-0",vendor="nvidia",model="Card",state="degraded"} 0
gpu_health{gpu="0",uuid="GPU-0",vendor="nvidia",model="Card",state="failed"} 0
gpu_health{gpu="0",uuid="GPU-0",vendor="nvidia",model="Card",state="unknown"} 0
)";

TEST_F(HealthTest, PublishesTheStateAndItsReasons) {
  EXPECT_EQ(machine_.health.get()->devices.size(), 0U);
  device(1);
  EXPECT_EQ(judged(), kFailed);
  EXPECT_EQ(machine_.health.get()->state, health::State::failed);
}

TEST_F(HealthTest, AReasonThatEndsLeavesThePage) {
  device(1);
  judged();
  device(0);
  EXPECT_EQ(judged(), kOk);
}

TEST_F(HealthTest, LogsWhenAReasonBeginsAndWhenItEnds) {
  testing::internal::CaptureStderr();
  device(0);
  judged();
  for (const double failed : {1, 1, 0, 0}) {
    device(failed);
    judged();
  }
  ASSERT_TRUE(log_.flush(10s));
  const std::string log = testing::internal::GetCapturedStderr();
  const std::string facts =
      " reason=row_remap_failed severity=failed action=replace detail=\"a memory row could not be remapped: "
      "no "
      "spare rows are left\"";
  const auto begin = log.find(
      "level=warn msg=\"GPU 0 failed: row_remap_failed; replace\" gpu=0 uuid=GPU-0 state=failed" + facts);
  const auto end = log.find("level=info msg=\"GPU 0 is ok again after 2s\" gpu=0 uuid=GPU-0 state=ok" +
                            facts + " held_seconds=2\n");
  EXPECT_NE(begin, std::string::npos) << log;
  EXPECT_NE(end, std::string::npos) << log;
  EXPECT_LT(begin, end);
  EXPECT_EQ(std::ranges::count(log, '\n'), 2) << log;
}

TEST_F(HealthTest, EventsThatOnlyTheDaemonCountedAreNewsAfterARestartUntilTheMachineBoots) {
  const auto xid = [this](double count) {
    device_.add(catalog::up, labels(), 1);
    device_.add(catalog::xid_errors, labels().with({{"xid", "79"}}), count);
    device_.commit(clock_.monotonic());
    judged();
    return std::string(to_string(machine_.health.get()->state));
  };
  xid(0);
  EXPECT_EQ(xid(2), "failed");
  const std::string section = dynamic_cast<Keeps&>(*part_).save();
  for (const bool is_of_this_boot : {true, false}) {
    part_ = opened();
    ASSERT_TRUE(dynamic_cast<Keeps&>(*part_).resume(section, is_of_this_boot));
    EXPECT_EQ(dynamic_cast<Keeps&>(*part_).save(),
              is_of_this_boot ? section : "");  // before it sees the device
    EXPECT_EQ(xid(0), is_of_this_boot ? "failed" : "ok");
  }
}

TEST_F(HealthTest, TheRecoveriesOfADayCountAfterARestartUntilTheMachineBoots) {
  const auto recoveries = [this](double count) {
    device_.add(catalog::up, labels(), 1);
    device_.add(catalog::link_errors,
                labels().with({{"kind", "nvlink"}, {"link", "14"}, {"error", "recovery"}}), count);
    device_.commit(clock_.monotonic());
    judged();
    return std::string(to_string(machine_.health.get()->state));
  };
  EXPECT_EQ(recoveries(505) + recoveries(506), "okok");
  const std::string section = dynamic_cast<Keeps&>(*part_).save();
  for (const bool is_of_this_boot : {true, false}) {
    part_ = opened();
    ASSERT_TRUE(dynamic_cast<Keeps&>(*part_).resume(section, is_of_this_boot));
    EXPECT_EQ(dynamic_cast<Keeps&>(*part_).save(), is_of_this_boot ? section : "");
    EXPECT_EQ(recoveries(507), is_of_this_boot ? "degraded" : "ok");
  }
}

TEST_F(HealthTest, WhatACardEverHadIsTheMeasureAfterABootToo) {
  const auto links = [this](double up) {
    device_.add(catalog::up, labels(), 1);
    device_.add(catalog::interconnect_links_up, labels().with({{"kind", "nvlink"}}), up);
    device_.commit(clock_.monotonic());
    for (int second = 0; second <= 121; ++second) judged();
    return std::string(to_string(machine_.health.get()->state));
  };
  EXPECT_EQ(links(18), "ok");
  const std::string section = dynamic_cast<Keeps&>(*part_).save();
  part_ = opened();
  ASSERT_TRUE(dynamic_cast<Keeps&>(*part_).resume(section, false));
  EXPECT_EQ(links(17), "failed");
}

TEST_F(HealthTest, ASectionThatIsNotItsOwnIsAnError) {
  EXPECT_FALSE(
      dynamic_cast<Keeps&>(*part_).resume("event\tGPU-0\tgpu_xid_errors_total,xid=79\t-1\t5\n", true));
}

}  // namespace
}  // namespace gpumeter
