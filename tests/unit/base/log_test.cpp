#include "base/log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace gpumeter {
namespace {

/// Returns the output of the log on stderr so far.
std::string captured(Log& log) {
  EXPECT_TRUE(log.flush(std::chrono::seconds(10)));
  return testing::internal::GetCapturedStderr();
}

class StoppedClock final : public Clock {
 public:
  Nanoseconds monotonic() const noexcept override { return Nanoseconds(0); }
  Nanoseconds boottime() const noexcept override { return Nanoseconds(0); }
  Nanoseconds realtime() const noexcept override { return std::chrono::milliseconds(1'767'312'000'007); }
};

TEST(Log, WritesLinesFromItsLevelOnToStderr) {
  const StoppedClock clock;
  testing::internal::CaptureStderr();
  Log log(clock, {LogLevel::info, LogFormat::logfmt});
  log.debug("not said");
  log.info("device found", {{"gpu", "0"}, {"uuid", "GPU-1"}});
  log.warn("slow {} %s");
  log.error("lost");
  EXPECT_EQ(captured(log),
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
  EXPECT_EQ(captured(log),
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
  EXPECT_EQ(captured(log), expected);
  EXPECT_EQ(log.dropped(), 0U);
}

/// Replaces stderr with a pipe that is not read until read_some().
class UnreadStderr {
 public:
  UnreadStderr() : before_(dup(STDERR_FILENO)) {
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0);
    fcntl(ends_[1], F_SETPIPE_SZ, 4096);
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    dup2(ends_[1], STDERR_FILENO);
  }
  ~UnreadStderr() {
    dup2(before_, STDERR_FILENO);
    for (const int fd : {before_, ends_[0], ends_[1]}) close(fd);
  }
  std::string read_some() const {
    std::string text(4096, '\0');
    const ssize_t got = read(ends_[0], text.data(), text.size());
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return text;
  }
  std::string read_until(const std::string& words) const {
    std::string text;
    while (text.find(words) == std::string::npos) {
      text += read_some();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return text;
  }

 private:
  int before_;
  int ends_[2] = {};
};

// If this hangs, ctest's timeout fails the test.
TEST(Log, WaitsForNobodyWhoDoesNotReadItAndCountsWhatItDrops) {
  const SystemClock clock;
  const UnreadStderr unread;
  Log log(clock, {LogLevel::info, LogFormat::logfmt});
  for (int i = 0; i < 3000; ++i) log.info("line", {{"text", std::string(100, 'x')}});
  log.configure({LogLevel::info, LogFormat::json});
  log.info("the last one");
  EXPECT_FALSE(log.flush(std::chrono::milliseconds(10)));
  const std::uint64_t dropped = log.dropped();
  EXPECT_GT(dropped, 1500U);
  const std::string text = unread.read_until("\"records\":\"" + std::to_string(dropped) + "\"}\n");
  EXPECT_NE(text.find("the last one"), std::string::npos);
  EXPECT_NE(text.find("log records were dropped"), std::string::npos);
  EXPECT_TRUE(log.flush(std::chrono::seconds(10)));
}

TEST(Log, EndsThoughItsReaderStalls) {
  const SystemClock clock;
  const UnreadStderr unread;
  {
    Log log(clock, {LogLevel::info, LogFormat::logfmt});
    for (int i = 0; i < 100; ++i) log.info("line", {{"text", std::string(100, 'x')}});
  }
  while (!unread.read_some().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(Log, CountsWhatCannotBeWritten) {
  const SystemClock clock;
  const int before = dup(STDERR_FILENO);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  dup2(full, STDERR_FILENO);
  {
    Log log(clock, {LogLevel::info, LogFormat::logfmt});
    log.info("one");
    log.info("two");
    EXPECT_TRUE(log.flush(std::chrono::seconds(10)));
    EXPECT_EQ(log.dropped(), 2U);
  }
  dup2(before, STDERR_FILENO);
  close(full);
  close(before);
}

}  // namespace
}  // namespace gpumeter
