#include "daemon/health/doctor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "collectors/api/catalog.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/walked.hpp"

namespace gpumeter {
namespace {

using namespace std::chrono_literals;

class DoctorTest : public testing::Test {
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
  /// The lines of gpu_health and gpu_health_reason.
  std::string judged() {
    clock_.advance(1s);
    doctor_.judge();
    const std::string lines = walked(store_);
    return lines.substr(0, lines.find("gpu_row_remap_failed"));
  }

  FakeClock clock_;
  Store store_;
  SeriesList device_{store_.attach("nvidia")};
  Log log_{clock_, {LogLevel::info, LogFormat::logfmt}};
  std::shared_ptr<health::EventBook> book_ = std::make_shared<health::EventBook>();
  Doctor doctor_{store_, clock_, log_, book_};
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

TEST_F(DoctorTest, PublishesTheStateAndItsReasons) {
  EXPECT_EQ(doctor_.report()->devices.size(), 0U);
  device(1);
  EXPECT_EQ(judged(), kFailed);
  EXPECT_EQ(doctor_.report()->state, health::State::failed);
}

TEST_F(DoctorTest, AReasonThatEndsLeavesThePage) {
  device(1);
  judged();
  device(0);
  EXPECT_EQ(judged(), kOk);
}

TEST_F(DoctorTest, LogsWhenAReasonBeginsAndWhenItEnds) {
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
  const auto begin =
      log.find("level=warn msg=\"health: a reason begins\" gpu=0 uuid=GPU-0 state=failed" + facts);
  const auto end = log.find("level=info msg=\"health: a reason ends\" gpu=0 uuid=GPU-0 state=ok" + facts +
                            " held_seconds=2\n");
  EXPECT_NE(begin, std::string::npos) << log;
  EXPECT_NE(end, std::string::npos) << log;
  EXPECT_LT(begin, end);
  EXPECT_EQ(std::ranges::count(log, '\n'), 2) << log;
}

TEST_F(DoctorTest, JudgesOnItsThread) {
  device(1);
  ASSERT_TRUE(doctor_.start([] { return true; }));
  while (doctor_.report()->devices.empty()) std::this_thread::yield();
  doctor_.stop();
  EXPECT_EQ(doctor_.report()->state, health::State::failed);
}

TEST_F(DoctorTest, WaitsUntilItMayBegin) {
  device(1);
  std::atomic<int> asked = 0;
  ASSERT_TRUE(doctor_.start([&] {
    EXPECT_TRUE(doctor_.report()->devices.empty());
    return ++asked == 3;
  }));
  while (doctor_.report()->devices.empty()) {
    doctor_.wake();
    std::this_thread::yield();
  }
  doctor_.wake();
  doctor_.stop();
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace gpumeter
