#include "daemon/log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace gpumeter {
namespace {

class StoppedClock final : public Clock {
 public:
  Nanoseconds monotonic() const noexcept override { return Nanoseconds(0); }
  Nanoseconds boottime() const noexcept override { return Nanoseconds(0); }
  Nanoseconds realtime() const noexcept override { return std::chrono::milliseconds(1'767'312'000'007); }
};

using config::LogFormat;
using config::LogLevel;

TEST(Log, WritesLinesFromItsLevelOnToStderr) {
  const StoppedClock clock;
  testing::internal::CaptureStderr();
  Log log(clock, {LogLevel::info, LogFormat::logfmt});
  log.debug("not said");
  log.info("device found", {{"gpu", "0"}, {"uuid", "GPU-1"}});
  log.warn("slow {} %s");
  log.error("lost");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ts=2026-01-02T00:00:00.007Z level=info msg=\"device found\" gpu=0 uuid=GPU-1\n"
            "ts=2026-01-02T00:00:00.007Z level=warn msg=\"slow {} %s\"\n"
            "ts=2026-01-02T00:00:00.007Z level=error msg=lost\n");
}

TEST(Log, TakesOnAnotherLevelAndFormat) {
  const StoppedClock clock;
  testing::internal::CaptureStderr();
  Log log(clock, {LogLevel::error, LogFormat::logfmt});
  log.warn("not said");
  log.configure({LogLevel::debug, LogFormat::json});
  log.debug("said", {{"a", "b"}});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "{\"ts\":\"2026-01-02T00:00:00.007Z\",\"level\":\"debug\",\"msg\":\"said\",\"a\":\"b\"}\n");
}

TEST(Log, IsLogfmtWhereNoSystemdRunsIt) {
  const StoppedClock clock;
  testing::internal::CaptureStderr();
  Log(clock, {LogLevel::info, LogFormat::automatic}).info("up");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "ts=2026-01-02T00:00:00.007Z level=info msg=up\n");
}

TEST(Log, KeepsLinesWholeWhileThreadsLogAndItIsConfigured) {
  constexpr int kThreads = 4;
  constexpr int kLines = 200;
  const StoppedClock clock;
  testing::internal::CaptureStderr();
  Log log(clock, {LogLevel::info, LogFormat::logfmt});
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&log] {
      for (int line = 0; line < kLines; ++line) log.info("line", {{"text", std::string(100, 'x')}});
    });
  }
  for (int i = 0; i < 50; ++i) log.configure({LogLevel::info, LogFormat::logfmt});
  for (std::thread& thread : threads) thread.join();
  std::string expected;
  for (int i = 0; i < kThreads * kLines; ++i) {
    expected += "ts=2026-01-02T00:00:00.007Z level=info msg=line text=" + std::string(100, 'x') + "\n";
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), expected);
}

}  // namespace
}  // namespace gpumeter
