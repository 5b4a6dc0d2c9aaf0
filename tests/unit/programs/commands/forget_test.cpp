#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <thread>

#include "daemon/control/server.hpp"
#include "daemon/fleet/device_directory.hpp"
#include "daemon/fleet/state_keeper.hpp"
#include "programs/commands/commands.hpp"

namespace gpumeter {
namespace {

using std::chrono::seconds;

class ControlTest : public testing::Test {
 protected:
  ControlTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~ControlTest() override { std::filesystem::remove_all(folder_); }

  Nanoseconds soon() const { return clock_.monotonic() + seconds(30); }

  void save(const std::vector<std::string>& uuids) {
    DeviceDirectory directory(folder_);
    ASSERT_TRUE(directory.load());
    for (const std::string& uuid : uuids) {
      DeviceInfo info;
      info.uuid = uuid;
      directory.admit("amd", info, 0, seconds(1));
    }
    ASSERT_TRUE(directory.save());
  }
  std::vector<std::string> saved() const {
    std::vector<std::string> uuids;
    DeviceDirectory directory(folder_);
    EXPECT_TRUE(directory.load());
    for (const auto& [uuid, device] : directory.devices()) uuids.push_back(uuid);
    return uuids;
  }
  std::string refusal(const std::string& uuid) const {
    const Result<Done> done = forget_device(folder_, uuid);
    return done ? "" : done.error().message();
  }
  void wait_for_socket() const {
    while (!std::filesystem::exists(folder_ + "/control.sock")) std::this_thread::yield();
    while (refusal("nobody").find("Connection refused") != std::string::npos) std::this_thread::yield();
  }

  const std::string folder_ = testing::TempDir() + "/control-" + std::to_string(getpid());
  const SystemClock clock_;
  Log log_{clock_, {LogLevel::error, LogFormat::logfmt}};
};

TEST_F(ControlTest, WithoutADaemonTheFileIsEdited) {
  save({"a", "b"});
  EXPECT_EQ(refusal("c"), "c is not a known device; known are a, b");
  EXPECT_EQ(refusal("a"), "");
  EXPECT_EQ(saved(), std::vector<std::string>{"b"});
}

TEST_F(ControlTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_EQ(forget_device(folder_ + "/none", "a").error().message(),
            folder_ + "/none: No such file or directory");
}

TEST_F(ControlTest, WithADaemonTheDaemonIsAskedAndTheFileIsLeftToIt) {
  save({"a", "b"});
  StateKeeper keeper({folder_}, clock_, log_);
  keeper.load(soon());
  std::mutex mutex;
  std::vector<std::string> asked;
  ControlServer server(folder_, clock_, log_, [&](const std::string& uuid) -> Result<Done> {
    const std::lock_guard lock(mutex);
    asked.push_back(uuid);
    if (uuid == "a") return Done{};
    return Error(uuid + " is still there");
  });
  ASSERT_TRUE(server.start());
  wait_for_socket();
  EXPECT_EQ(refusal("a"), "");
  EXPECT_EQ(refusal("b"), "b is still there");
  EXPECT_EQ(saved(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(asked.back(), "b");
  EXPECT_EQ(refusal("b\nforget a"), "a uuid is one line");
  struct stat status {};
  ASSERT_EQ(stat((folder_ + "/control.sock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_TRUE(server.stop(soon()));
  EXPECT_TRUE(keeper.stop(soon()));
}

TEST_F(ControlTest, ASecondDaemonLeavesTheSocketToTheFirst) {
  const auto refusing = [](const char* name) {
    return [name](const std::string&) -> Result<Done> { return Error(name); };
  };
  StateKeeper keeper({folder_}, clock_, log_);
  keeper.load(soon());
  ControlServer first(folder_, clock_, log_, refusing("first"));
  ASSERT_TRUE(first.start());
  wait_for_socket();
  ControlServer second(folder_, clock_, log_, refusing("second"));
  ASSERT_TRUE(second.start());
  EXPECT_TRUE(second.stop(soon()));
  EXPECT_EQ(refusal("a"), "first");
  EXPECT_TRUE(first.stop(soon()));
  EXPECT_TRUE(keeper.stop(soon()));
}

TEST_F(ControlTest, ADaemonThatCannotBeAskedIsAnErrorAndTheFileStays) {
  save({"a"});
  StateKeeper keeper({folder_}, clock_, log_);
  keeper.load(soon());
  EXPECT_EQ(refusal("a"), "another process uses " + folder_ + ", and it cannot be asked: " + folder_ +
                              "/control.sock: No such file or directory");
  EXPECT_EQ(saved(), std::vector<std::string>{"a"});
  ASSERT_TRUE(keeper.stop(soon()));
  EXPECT_EQ(refusal("a"), "");
}

// A client that sends nothing, or no end of a line, holds the others for a bounded time only.
TEST_F(ControlTest, AClientThatSaysNothingIsGivenUp) {
  ControlServer server(folder_, clock_, log_, [](const std::string&) -> Result<Done> { return Done{}; });
  ASSERT_TRUE(server.start());
  const auto address = control::address_in(folder_);
  Result<Descriptor> silent = control::open_socket();
  while (connect(silent->number(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    std::this_thread::yield();
  }
  Result<Descriptor> next = control::open_socket();
  ASSERT_EQ(connect(next->number(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address), 0);
  ASSERT_TRUE(control::write_line(*next, "dance"));
  const Result<std::string> answer = control::read_line(*next);
  ASSERT_TRUE(answer);
  EXPECT_EQ(*answer, "error unknown request");
  EXPECT_TRUE(server.stop(soon()));
}

TEST_F(ControlTest, AFolderThatCannotHoldASocketEndsAtOnce) {
  ControlServer server("/proc/none", clock_, log_, [](const std::string&) -> Result<Done> { return Done{}; });
  ASSERT_TRUE(server.start());
  EXPECT_TRUE(server.stop(soon()));
}

}  // namespace
}  // namespace gpumeter
