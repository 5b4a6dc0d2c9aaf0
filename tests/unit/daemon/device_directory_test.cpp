#include "daemon/device_directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace gpumeter {
namespace {

using std::chrono::seconds;

constexpr Nanoseconds kNow = seconds(1000);

DeviceInfo device(const std::string& uuid) {
  DeviceInfo info;
  info.uuid = uuid;
  info.vendor = "amd";
  info.model = "Radeon";
  return info;
}

class DeviceDirectoryTest : public testing::Test {
 protected:
  DeviceDirectoryTest() : folder_(testing::TempDir() + "/directory-" + std::to_string(getpid())) {
    std::filesystem::remove_all(folder_);
  }
  ~DeviceDirectoryTest() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(DeviceDirectoryTest, ADeadDeviceDoesNotShiftTheOthersAfterARestart) {
  {
    DeviceDirectory before(folder_);
    ASSERT_TRUE(before.load());
    EXPECT_EQ(before.admit("amd", device("a"), 0, kNow).index, 0u);
    EXPECT_EQ(before.admit("amd", device("b"), 1, kNow).index, 1u);
    ASSERT_TRUE(before.save());
  }
  DeviceDirectory after(folder_);
  ASSERT_TRUE(after.load());
  EXPECT_EQ(after.admit("amd", device("b"), 0, kNow).index,
            1u);  // "a" is gone, "b" stands first on the bus now
  EXPECT_EQ(after.admit("amd", device("c"), 1, kNow).index, 2u);  // and a new one gets a number nobody had
  EXPECT_EQ(after.devices().at("a").info.model, "Radeon");
}

TEST_F(DeviceDirectoryTest, ForgetsWhatWasNotSeenForLong) {
  DeviceDirectory directory(folder_);
  directory.admit("amd", device("old"), 0, seconds(100));
  directory.admit("amd", device("new"), 1, seconds(200));
  EXPECT_EQ(directory.forget(seconds(150)), std::vector<std::string>{"old"});
  EXPECT_EQ(directory.devices().size(), 1u);
}

TEST_F(DeviceDirectoryTest, ABrokenFileIsNamedAndSetAside) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ + "/devices.json") << "{\"devices\": [{\"uuid\": \"a\"}]}";
  DeviceDirectory directory(folder_);
  const Result<Done> loaded = directory.load();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().message().find(folder_ + "/devices.json: "), 0u) << loaded.error().message();
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/devices.json.bad"));
  EXPECT_EQ(directory.devices().size(), 0u);
}

TEST_F(DeviceDirectoryTest, AFolderThatCannotBeWrittenIsAnError) {
  DeviceDirectory directory("/proc/none");
  const Result<Done> saved = directory.save();
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().message(), "/proc/none/devices.json.new: No such file or directory");
}

}  // namespace
}  // namespace gpumeter
