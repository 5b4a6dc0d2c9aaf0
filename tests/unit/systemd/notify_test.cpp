#include "systemd/notify.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
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

std::string shown(const std::vector<PassedSocket>& sockets) {
  std::string text;
  for (const PassedSocket& socket : sockets) {
    constexpr const char* kKinds[] = {"stream", "datagram", "other"};
    const bool closes = (fcntl(socket.fd, F_GETFD) & FD_CLOEXEC) != 0;
    text += std::to_string(socket.fd) + "=" + socket.name + (closes ? "" : " leaks") + " " +
            (socket.is_unix ? "unix " : "") + kKinds[static_cast<int>(socket.kind)] + ", ";
  }
  return text;
}

std::string shown(const Result<PassedSockets>& taken) {
  if (!taken) return taken.error().message();
  const Result<Done> checked = check_http(taken->http);
  return "http: " + shown(taken->http) + (checked ? "fine" : checked.error().message()) +
         "; jobs: " + shown(taken->jobs);
}

/// Prints the result of take_passed_sockets() for `count` passed sockets from descriptor 3 on. Descriptor 3
/// belongs to the test program, so this runs in a child process, which prints the result to stderr and exits.
[[noreturn]] void started_with(int count, const char* names, const std::function<void()>& make_sockets) {
  make_sockets();
  setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
  setenv("LISTEN_FDS", std::to_string(count).c_str(), 1);
  setenv("LISTEN_FDNAMES", names, 1);
  std::string said = shown(take_passed_sockets());
  said += "then " + shown(take_passed_sockets()) + "\n";
  std::fprintf(stderr, "%s", said.c_str());
  _exit(0);
}

void put_socket(int fd, int type, bool listening, int family = AF_INET) {
  const int made = socket(family, type, 0);
  const sockaddr autobind{.sa_family = AF_UNIX, .sa_data = {}};  // a Unix socket must have an address
  if (family == AF_UNIX) bind(made, &autobind, sizeof(sa_family_t));
  if (listening) listen(made, 1);
  if (made != fd) dup2(made, fd);
}

class ListenFds : public testing::Test {
 protected:
  // The fast style only forks, which is sufficient: no other thread runs here, and the child creates none.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "fast"); }
};

constexpr const char* kThenNone = "then http: no socket activation file descriptors found; jobs: \n$";

TEST_F(ListenFds, AreTakenOnceWithTheirNames) {
  EXPECT_EXIT(started_with(2, "http:admin",
                           [] {
                             put_socket(3, SOCK_STREAM, true);
                             put_socket(4, SOCK_STREAM, true);
                           }),
              testing::ExitedWithCode(0),
              std::string("^http: 3=http stream, 4=admin stream, fine; jobs: ") + kThenNone);
}

TEST_F(ListenFds, OfJobsAreApart) {
  EXPECT_EXIT(started_with(3, "jobs:gpumeter.socket:jobs",
                           [] {
                             put_socket(3, SOCK_DGRAM, false, AF_UNIX);
                             put_socket(4, SOCK_STREAM, true);
                             put_socket(5, SOCK_STREAM, true, AF_UNIX);
                           }),
              testing::ExitedWithCode(0),
              std::string("^http: 4=gpumeter.socket stream, fine; jobs: 3=jobs unix datagram, "
                          "5=jobs unix stream, ") +
                  kThenNone);
}

TEST_F(ListenFds, OfJobsAloneServeNoHttp) {
  EXPECT_EXIT(
      started_with(1, "jobs", [] { put_socket(3, SOCK_DGRAM, false, AF_UNIX); }), testing::ExitedWithCode(0),
      std::string("^http: no socket activation file descriptors found; jobs: 3=jobs unix datagram, ") +
          kThenNone);
}

TEST_F(ListenFds, MustListen) {
  EXPECT_EXIT(started_with(1, "http", [] { put_socket(3, SOCK_STREAM, false); }), testing::ExitedWithCode(0),
              "^http: 3=http other, socket activation file descriptor 3 \\(http\\) is not a listening stream "
              "socket; ");
  EXPECT_EXIT(
      started_with(1, "http", [] { put_socket(3, SOCK_DGRAM, false); }), testing::ExitedWithCode(0),
      "^http: 3=http datagram, socket activation file descriptor 3 \\(http\\) is not a listening stream "
      "socket; ");
}

TEST_F(ListenFds, AreMissedWhereNoneCame) {
  EXPECT_EQ(shown(take_passed_sockets()), "http: no socket activation file descriptors found; jobs: ");
}

class JournalStream : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe(ends_), 0); }
  void TearDown() override {
    for (const int fd : ends_) close(fd);
  }

  std::string device_and_inode() const {
    struct stat status {};
    fstat(ends_[0], &status);
    return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
  }

  int ends_[2] = {-1, -1};
};

TEST_F(JournalStream, IsToldByDeviceAndInode) {
  const std::string stream = device_and_inode();
  EXPECT_TRUE(is_journal_stream(ends_[0], stream.c_str()));
  EXPECT_FALSE(is_journal_stream(ends_[0], (stream + "0").c_str()));
  EXPECT_FALSE(is_journal_stream(STDERR_FILENO, stream.c_str()));
  EXPECT_FALSE(is_journal_stream(-1, stream.c_str()));
}

TEST_F(JournalStream, IsNotToldByAnythingElse) {
  const std::string stream = device_and_inode();
  EXPECT_FALSE(is_journal_stream(ends_[0], nullptr));
  for (const std::string& text :
       {std::string(), std::string(":"), std::string("x"), stream + " ", " " + stream,
        stream.substr(0, stream.find(':')), stream.substr(0, stream.find(':') + 1)}) {
    EXPECT_FALSE(is_journal_stream(ends_[0], text.c_str())) << text;
  }
}

}  // namespace
}  // namespace gpumeter::systemd
