#include "systemd/listen_fds.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

namespace gpumeter::systemd {
namespace {

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

}  // namespace
}  // namespace gpumeter::systemd
