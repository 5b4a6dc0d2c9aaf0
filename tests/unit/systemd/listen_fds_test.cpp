#include "systemd/listen_fds.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

namespace gpumeter::systemd {
namespace {

std::string shown(const std::variant<std::vector<ListenSocket>, std::string>& taken) {
  if (const auto* error = std::get_if<std::string>(&taken)) return *error;
  std::string text;
  for (const auto& [fd, name] : std::get<0>(taken)) {
    const bool closes = (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
    text += std::to_string(fd) + "=" + name + (closes ? "" : " leaks") + " ";
  }
  return text;
}

/// What take_listen_sockets() says in a process that was started with `count` sockets from 3 on. Leaves the
/// process, since descriptor 3 is the test program's own: the text is its last words on stderr.
[[noreturn]] void started_with(int count, const char* names, const std::function<void()>& make_sockets) {
  make_sockets();
  setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
  setenv("LISTEN_FDS", std::to_string(count).c_str(), 1);
  setenv("LISTEN_FDNAMES", names, 1);
  std::string said = has_listen_sockets() ? "there: " : "none: ";
  said += shown(take_listen_sockets());
  said += has_listen_sockets() ? "; still: " : "; then: " + shown(take_listen_sockets()) + "\n";
  std::fprintf(stderr, "%s", said.c_str());
  _exit(0);
}

void put_socket(int fd, int type, bool listening) {
  const int made = socket(AF_INET, type, 0);
  if (listening) listen(made, 1);
  if (made != fd) dup2(made, fd);
}

class ListenFds : public testing::Test {
 protected:
  // Forking is all that the tests need: no thread runs here, and none is made in the child.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "fast"); }
};

TEST_F(ListenFds, AreTakenOnceWithTheirNames) {
  EXPECT_EXIT(started_with(2, "http:admin",
                           [] {
                             put_socket(3, SOCK_STREAM, true);
                             put_socket(4, SOCK_STREAM, true);
                           }),
              testing::ExitedWithCode(0),
              "^there: 3=http 4=admin ; then: no socket activation file descriptors found\n$");
}

TEST_F(ListenFds, MustListen) {
  EXPECT_EXIT(
      started_with(1, "http", [] { put_socket(3, SOCK_STREAM, false); }), testing::ExitedWithCode(0),
      "^there: socket activation file descriptor 3 \\(http\\) is not a listening stream socket; then: ");
  EXPECT_EXIT(
      started_with(1, "http", [] { put_socket(3, SOCK_DGRAM, false); }), testing::ExitedWithCode(0),
      "^there: socket activation file descriptor 3 \\(http\\) is not a listening stream socket; then: ");
}

TEST_F(ListenFds, AreMissedWhereNoneCame) {
  EXPECT_FALSE(has_listen_sockets());
  EXPECT_EQ(shown(take_listen_sockets()), "no socket activation file descriptors found");
}

}  // namespace
}  // namespace gpumeter::systemd
