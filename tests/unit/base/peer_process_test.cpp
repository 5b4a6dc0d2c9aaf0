#include "base/peer_process.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace gpumeter {
namespace {

/// A listening socket without a name, its address, and connections to it.
class Listener {
 public:
  Listener() : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr family{};
    family.sa_family = AF_UNIX;
    bind(socket_.number(), &family, sizeof family.sa_family);  // the kernel chooses an abstract name
    getsockname(socket_.number(), reinterpret_cast<sockaddr*>(&address_), &size_);
    listen(socket_.number(), 8);
  }

  bool connect_to(int client) const {
    return connect(client, reinterpret_cast<const sockaddr*>(&address_), size_) == 0;
  }
  Descriptor accept_one() const { return Descriptor(accept(socket_.number(), nullptr, nullptr)); }

 private:
  Descriptor socket_;
  sockaddr_storage address_{};
  socklen_t size_ = sizeof address_;
};

TEST(PeerProcess, ReadsTheNumbersOfAProcess) {
  EXPECT_EQ(numbers_in_namespaces("Name:\tx\nNSpid:\t4711\t12\t1\nX:\t1\n"), (std::vector<int>{4711, 12, 1}));
  EXPECT_EQ(numbers_in_namespaces("NSpid:\tx\n"), std::vector<int>());
  EXPECT_EQ(numbers_in_namespaces("Name:\tNSpid: 1"), std::vector<int>());
}

TEST(PeerProcess, NamesTheProcessThatConnected) {
  const Listener listener;
  const Descriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(listener.connect_to(client.number()));
  const Descriptor accepted = listener.accept_one();
  const auto peer = PeerProcess::of(accepted.number());
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->pid(), getpid());
  EXPECT_EQ(peer->uid(), geteuid());
  EXPECT_TRUE(peer->is_alive());
  const auto numbers = peer->numbers();
  ASSERT_TRUE(numbers);
  EXPECT_EQ(numbers->front(), getpid());
}

// The attack: the number of the child that connected means nothing once the child has ended, and the parent
// sends.
TEST(PeerProcess, AChildThatConnectedAndEndedIsNobody) {
  const Listener listener;
  for (const bool ends_before : {true, false}) {
    const Descriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    std::array<int, 2> end{};
    ASSERT_EQ(pipe(end.data()), 0);
    const Descriptor read_end(end[0]);
    Descriptor write_end(end[1]);
    const pid_t child = fork();
    if (child == 0) {
      close(end[1]);
      char byte = 0;
      const bool connected = listener.connect_to(client.number());
      if (!ends_before && read(end[0], &byte, 1) < 0) _exit(1);
      _exit(connected ? 0 : 1);
    }
    const auto reap = [&] {
      write_end = Descriptor();
      int status = -1;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    };
    if (ends_before) reap();
    const Descriptor accepted = listener.accept_one();
    const auto peer = PeerProcess::of(accepted.number());
    ASSERT_TRUE(peer);
    if (!ends_before) {
      EXPECT_TRUE(peer->is_alive());
      EXPECT_TRUE(peer->numbers());
      reap();
    }
    EXPECT_FALSE(peer->is_alive());
    const auto numbers = peer->numbers();
    ASSERT_FALSE(numbers);
    EXPECT_NE(numbers.error().message().find("has ended"), std::string::npos);
  }
}

}  // namespace
}  // namespace gpumeter
