#include "systemd/notify.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

namespace gpumeter::systemd {
namespace {

/// systemd's end of $NOTIFY_SOCKET: a Unix datagram socket.
class Notify : public testing::Test {
 protected:
  void SetUp() override {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0)
        << std::strerror(errno);
    setenv("NOTIFY_SOCKET", path_.c_str(), 1);
  }
  void TearDown() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
    close(fd_);
    unlink(path_.c_str());
  }

  std::string received() const {
    std::array<char, 512> text{};
    const ssize_t size = recv(fd_, text.data(), text.size(), MSG_DONTWAIT);
    return size < 0 ? "nothing" : std::string(text.data(), static_cast<std::size_t>(size));
  }

  const std::string path_ = testing::TempDir() + "notify_" + std::to_string(getpid());
  int fd_ = -1;
};

TEST_F(Notify, TellsWhatTheDaemonDoes) {
  EXPECT_TRUE(notify_ready("2 GPUs"));
  EXPECT_EQ(received(), "READY=1\nSTATUS=2 GPUs");
  EXPECT_TRUE(notify_status("3 GPUs"));
  EXPECT_EQ(received(), "STATUS=3 GPUs");
  EXPECT_TRUE(notify_reloading(std::chrono::microseconds(9'000'000'123)));
  EXPECT_EQ(received(), "RELOADING=1\nMONOTONIC_USEC=9000000123");
  EXPECT_TRUE(notify_watchdog());
  EXPECT_EQ(received(), "WATCHDOG=1");
  EXPECT_TRUE(notify_stopping());
  EXPECT_EQ(received(), "STOPPING=1");
}

TEST_F(Notify, KeepsAStatusToOneLine) {
  EXPECT_TRUE(notify_status("a\nMAINPID=1"));
  EXPECT_EQ(received(), "STATUS=a MAINPID=1");
}

TEST_F(Notify, SaysNothingWithoutSystemd) {
  unsetenv("NOTIFY_SOCKET");
  EXPECT_FALSE(notify_ready("up"));
  EXPECT_FALSE(notify_reloading(std::chrono::microseconds(1)));
  EXPECT_FALSE(notify_watchdog());
  EXPECT_EQ(received(), "nothing");
}

TEST_F(Notify, KnowsWhenPingsAreWantedOfThisProcess) {
  EXPECT_EQ(watchdog_interval(), std::nullopt);
  setenv("WATCHDOG_USEC", "30000000", 1);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  EXPECT_EQ(watchdog_interval(), std::chrono::seconds(30));
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_EQ(watchdog_interval(), std::nullopt);
}

}  // namespace
}  // namespace gpumeter::systemd
