#include "daemon/fleet/state_keeper.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

namespace gpumeter {
namespace {

using std::chrono::seconds;

class StateKeeperTest : public testing::Test {
 protected:
  StateKeeperTest() { std::filesystem::remove_all(folder_); }
  ~StateKeeperTest() override { std::filesystem::remove_all(folder_); }

  Nanoseconds soon() const { return clock_.monotonic() + seconds(30); }
  static DeviceInfo device(const std::string& uuid) {
    DeviceInfo info;
    info.uuid = uuid;
    return info;
  }

  const std::string folder_ = testing::TempDir() + "/keeper-" + std::to_string(getpid());
  const SystemClock clock_;
  Log log_{clock_, {LogLevel::error, LogFormat::logfmt}};
};

TEST_F(StateKeeperTest, TheLatestDirectoryIsOnTheDiskAtTheEnd) {
  StateKeeper keeper({folder_}, clock_, log_);
  DeviceDirectory directory = keeper.load(soon());
  for (const char* uuid : {"a", "b", "c"}) {
    directory.admit("amd", device(uuid), 0, seconds(1));
    keeper.save(directory);
  }
  ASSERT_TRUE(keeper.stop(soon()));
  DeviceDirectory read(folder_);
  ASSERT_TRUE(read.load());
  EXPECT_EQ(read.devices().size(), 3U);
}

TEST_F(StateKeeperTest, TheFolderOfAnotherDaemonIsReadAndNotWritten) {
  StateKeeper first({folder_}, clock_, log_);
  DeviceDirectory directory = first.load(soon());
  directory.admit("amd", device("a"), 0, seconds(1));
  first.save(directory);
  while (!std::filesystem::exists(folder_ + "/devices.json")) std::this_thread::yield();
  StateKeeper second({folder_}, clock_, log_);
  DeviceDirectory copy = second.load(soon());
  EXPECT_EQ(copy.devices().size(), 1U);
  copy.admit("amd", device("b"), 0, seconds(1));
  second.save(copy);
  ASSERT_TRUE(second.stop(soon()));
  ASSERT_TRUE(first.stop(soon()));
  DeviceDirectory read(folder_);
  ASSERT_TRUE(read.load());
  EXPECT_EQ(read.devices().size(), 1U);
  StateKeeper alone({folder_}, clock_, log_);
  EXPECT_EQ(alone.load(soon()).devices().size(), 1U);
  alone.save(copy);
  ASSERT_TRUE(alone.stop(soon()));
  DeviceDirectory again(folder_);
  ASSERT_TRUE(again.load());
  EXPECT_EQ(again.devices().size(), 2U);
}

TEST_F(StateKeeperTest, IsNotOnlyWrittenAtTheEnd) {
  StateKeeper keeper({folder_}, clock_, log_);
  DeviceDirectory directory = keeper.load(soon());
  directory.admit("amd", device("a"), 0, seconds(1));
  keeper.save(directory);
  while (!std::filesystem::exists(folder_ + "/devices.json")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST_F(StateKeeperTest, WhatCannotBeReadIsNotOverwritten) {
  std::filesystem::create_directories(folder_);
  ASSERT_EQ(mkfifo((folder_ + "/devices.json").c_str(), 0600), 0);
  testing::internal::CaptureStderr();
  StateKeeper keeper({folder_}, clock_, log_);
  DeviceDirectory directory = keeper.load(soon());
  EXPECT_TRUE(directory.devices().empty());
  directory.admit("amd", device("a"), 0, seconds(1));
  keeper.save(directory);
  ASSERT_TRUE(keeper.stop(soon()));
  EXPECT_TRUE(std::filesystem::is_fifo(folder_ + "/devices.json"));
  log_.flush(seconds(30));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("devices.json: is not a regular file"),
            std::string::npos);
}

}  // namespace
}  // namespace gpumeter
