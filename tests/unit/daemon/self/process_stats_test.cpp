#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "daemon/self/metrics.hpp"

namespace gpumeter {
namespace {

class ProcessStatsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "gpumeter-procXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    std::filesystem::create_directories(root_ + "/self/fd");
    for (const char* fd : {"0", "1", "2"}) write("self/fd/" + std::string(fd), "");
    write("stat", "cpu  1 2 3\nbtime 1700000000\nprocesses 9\n");
    write("self/limits",
          "Limit                     Soft Limit           Hard Limit           Units     \n"
          "Max open files            1024                 524288               files     \n");
    write("self/stat",
          "7 (a) b) (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 3 0 12345 4096000 100 "
          "18446744073709551615 1 1\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) { std::ofstream(root_ + "/" + path) << text; }

  std::string root_;
};

TEST_F(ProcessStatsTest, ReadsTheKernelsFilesInBaseUnits) {
  const auto stats = read_process_stats(root_);
  ASSERT_TRUE(stats) << stats.error().message();
  const auto hertz = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_EQ(stats->cpu_seconds, 300 / hertz);
  EXPECT_EQ(stats->start_time_seconds, 1700000000 + 12345 / hertz);
  EXPECT_EQ(stats->virtual_bytes, 4096000);
  EXPECT_EQ(stats->resident_bytes, 100.0 * static_cast<double>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(stats->threads, 3);
  EXPECT_EQ(stats->open_fds, 3);
  EXPECT_EQ(stats->max_fds, 1024);
}

TEST_F(ProcessStatsTest, KnowsNoLimitAsInfinity) {
  write("self/limits", "Max open files            unlimited            unlimited            files     \n");
  EXPECT_EQ(read_process_stats(root_)->max_fds, INFINITY);
}

TEST_F(ProcessStatsTest, SaysWhatItCannotRead) {
  write("self/stat", "7 (cut off) S 1 7");
  EXPECT_EQ(read_process_stats(root_).error().message(), root_ + "/self: does not match proc(5)");
  EXPECT_EQ(read_process_stats("/nowhere").error().message(), "cannot read /nowhere/self");
}

/// Field 20 of proc(5)'s stat, which is at least 1 if a kernel wrote it.
long threads_of_this_process() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int number = 3; number <= 20; ++number) fields >> field;
  return std::stol(field);
}

TEST(ProcessStats, ReadsThisProcess) {
  if (threads_of_this_process() == 0) GTEST_SKIP() << "/proc/self/stat is an emulator's: it has no threads";
  const auto stats = read_process_stats("/proc");
  ASSERT_TRUE(stats) << stats.error().message();
  EXPECT_GT(stats->resident_bytes, 0);
  EXPECT_GE(stats->virtual_bytes, stats->resident_bytes);
  EXPECT_GE(stats->threads, 1);
}

}  // namespace
}  // namespace gpumeter
