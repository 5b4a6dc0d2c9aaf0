#include "daemon/fleet/device_directory.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

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
            1u);                                                  // "a" is gone, "b" is now first on the bus
  EXPECT_EQ(after.admit("amd", device("c"), 1, kNow).index, 2u);  // and a new device gets an unused number
  EXPECT_EQ(after.devices().at("a").info.model, "Radeon");
}

// A changed byte of a uuid would be a GPU that is missing until somebody forgets it.
TEST_F(DeviceDirectoryTest, RefusesAChangedListAndReadsOneOfAnOlderVersion) {
  DeviceDirectory before(folder_);
  before.admit("amd", device("GPU-a"), 3, kNow);
  ASSERT_TRUE(before.save());
  const std::string path = folder_ + "/devices.json";
  const auto text = [&] { return (std::ostringstream() << std::ifstream(path).rdbuf()).str(); };
  const std::string whole = text();
  std::string changed = whole;
  changed.replace(changed.find("GPU-a"), 5, "GPU-e");
  std::ofstream(path) << changed;
  DeviceDirectory after(folder_);
  const Result<Done> loaded = after.load();
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message().find("its checksum does not match"), std::string::npos);
  EXPECT_TRUE(after.devices().empty());
  EXPECT_TRUE(std::filesystem::exists(path + ".bad"));
  std::string older = whole;
  const std::size_t checksum = older.find("\"checksum\"");
  older.erase(checksum, older.find('\n', checksum) - checksum);
  std::ofstream(path) << older;
  DeviceDirectory old(folder_);
  EXPECT_TRUE(old.load());
  EXPECT_TRUE(old.devices().contains("GPU-a"));
}

TEST_F(DeviceDirectoryTest, CountsForHowLongADeviceIsMissingOverRestarts) {
  const auto all = [](Presence presence) { return [presence](const KnownDevice&) { return presence; }; };
  {
    DeviceDirectory before(folder_);
    before.admit("amd", device("a"), 0, kNow);
    EXPECT_TRUE(before.missing_for(all(Presence::missing), seconds(60), seconds(100)).empty());
    EXPECT_TRUE(before.missing_for(all(Presence::unknown), seconds(60), seconds(100)).empty());
    ASSERT_TRUE(before.save());
  }
  DeviceDirectory after(folder_);
  ASSERT_TRUE(after.load());
  DeviceDirectory returned = after;
  EXPECT_EQ(after.missing_for(all(Presence::missing), seconds(40), seconds(100)),
            std::vector<std::string>{"a"});
  EXPECT_TRUE(after.forget("a"));
  EXPECT_TRUE(after.devices().empty());
  EXPECT_FALSE(after.forget("a"));
  EXPECT_TRUE(returned.missing_for(all(Presence::there), seconds(40), seconds(100)).empty());
  EXPECT_TRUE(returned.missing_for(all(Presence::missing), seconds(99), seconds(100)).empty());
}

TEST_F(DeviceDirectoryTest, WithoutPatienceOnlyMissingDevicesAreDueAtOnce) {
  DeviceDirectory directory(folder_);
  for (const char* uuid : {"missing", "there", "unknown"}) directory.admit("amd", device(uuid), 0, kNow);
  const auto presence = [](const KnownDevice& known) {
    if (known.info.uuid == "missing") return Presence::missing;
    return known.info.uuid == "there" ? Presence::there : Presence::unknown;
  };
  EXPECT_EQ(directory.missing_for(presence, Nanoseconds(0), Nanoseconds(0)),
            std::vector<std::string>{"missing"});
  EXPECT_EQ(directory.devices().size(), 3U);
}

TEST_F(DeviceDirectoryTest, AForgottenDeviceFreesItsIndex) {
  DeviceDirectory directory(folder_);
  for (const char* uuid : {"a", "b"}) directory.admit("amd", device(uuid), 0, kNow);
  ASSERT_TRUE(directory.forget("a"));
  EXPECT_EQ(directory.admit("amd", device("c"), 0, kNow).index, 0U);
  EXPECT_EQ(directory.find("b")->index, 1U);
}

/// The directory of a machine with this id, after load().
struct OnMachine {
  OnMachine(const std::string& folder, const std::string& id) : directory(folder, folder + "/machine-id") {
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/machine-id") << id << "\n";
    loaded = static_cast<bool>(directory.load());
  }
  DeviceDirectory directory;
  bool loaded;
};

TEST_F(DeviceDirectoryTest, TheFileOfAnotherMachineIsAnEmptyDirectory) {
  const std::string ours(32, 'a');
  const std::string theirs(32, 'b');
  OnMachine before(folder_, ours);
  EXPECT_TRUE(before.loaded);
  before.directory.admit("amd", device("a"), 0, kNow);
  ASSERT_TRUE(before.directory.save());

  for (const std::string& id : {ours, std::string(), std::string("uninitialized")}) {
    const OnMachine same(folder_, id);
    EXPECT_TRUE(same.loaded && !same.directory.is_foreign()) << id;
    EXPECT_EQ(same.directory.devices().size(), 1U) << id;
    ASSERT_TRUE(same.directory.save());  // a machine without an id keeps the file's
  }
  const OnMachine clone(folder_, theirs);
  EXPECT_FALSE(clone.loaded);
  EXPECT_TRUE(clone.directory.is_foreign() && clone.directory.is_readable());
  EXPECT_TRUE(clone.directory.devices().empty());
  ASSERT_TRUE(clone.directory.save());
  EXPECT_TRUE(OnMachine(folder_, theirs).loaded);
}

TEST_F(DeviceDirectoryTest, AFileOfAnOlderVersionHasNoMachineAndIsOurs) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ + "/devices.json") << R"({"devices": []})";
  EXPECT_TRUE(OnMachine(folder_, std::string(32, 'a')).loaded);
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

std::string entry(const std::string& uuid, const std::string& index, const std::string& more = "") {
  return R"({"uuid": ")" + uuid + R"(", "index": )" + index +
         R"(, "collector": "amd", "vendor": "amd", "model": "", "pci_address": "", "last_seen": 5)" + more +
         "}";
}

TEST_F(DeviceDirectoryTest, EntriesThatCannotBeAreRefused) {
  const std::pair<std::string, std::string> cases[] = {
      {entry("a", "0") + "," + entry("b", "0"), "devices[1]: index 0 is also used by a"},
      {entry("a", "0") + "," + entry("a", "1"), "devices[1]: uuid a is listed twice"},
      {entry("", "0"), "devices[0]: uuid is empty"},
      {entry("a", "4096"), "devices[0]: index must be a whole number from 0 to 4095, not 4096"},
      {entry("a", "4294967296"), "devices[0]: index must be a whole number from 0 to 4095, not 4294967296"},
      {entry("a", "-1"), "devices[0]: index must be a whole number from 0 to 4095, not -1"},
      {entry("a", "1.5"), "devices[0]: index must be a whole number from 0 to 4095, not 1.5"},
      {entry("a", "0", R"(, "missing_seconds": "7")"),
       "devices[0]: missing_seconds must be a whole number from 0 to 9000000000, not \"7\""},
  };
  std::filesystem::create_directories(folder_);
  for (const auto& [entries, complaint] : cases) {
    std::ofstream(folder_ + "/devices.json") << R"({"devices": [)" << entries << "]}";
    DeviceDirectory directory(folder_);
    const Result<Done> loaded = directory.load();
    ASSERT_FALSE(loaded) << entries;
    EXPECT_EQ(loaded.error().message(),
              folder_ + "/devices.json: " + complaint +
                  "; the file was renamed to devices.json.bad, indexes start from 0");
    EXPECT_TRUE(directory.devices().empty() && directory.is_readable());
  }
}

// If this hangs, ctest's timeout fails the test.
TEST_F(DeviceDirectoryTest, WhatIsNoFileIsAnErrorAndStays) {
  std::filesystem::create_directories(folder_);
  ASSERT_EQ(mkfifo((folder_ + "/devices.json").c_str(), 0600), 0);
  DeviceDirectory directory(folder_);
  const Result<Done> loaded = directory.load();
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().message(), folder_ + "/devices.json: is not a regular file");
  EXPECT_FALSE(directory.is_readable());
  EXPECT_TRUE(std::filesystem::is_fifo(folder_ + "/devices.json"));
}

TEST_F(DeviceDirectoryTest, AWallClockOfAnyTimeMakesAFileThatCanBeRead) {
  for (const Nanoseconds now : {Nanoseconds::min(), Nanoseconds::max()}) {
    DeviceDirectory before(folder_);
    before.admit("amd", device("a"), 0, now);
    ASSERT_TRUE(before.save());
    EXPECT_TRUE(DeviceDirectory(folder_).load());
  }
}

TEST_F(DeviceDirectoryTest, AFolderThatCannotBeWrittenIsAnError) {
  DeviceDirectory directory("/proc/none");
  const Result<Done> saved = directory.save();
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().message(), "/proc/none: No such file or directory");
}

}  // namespace
}  // namespace gpumeter
