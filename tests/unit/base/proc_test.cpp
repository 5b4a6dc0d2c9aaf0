#include "base/proc.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

namespace gpumeter::proc {
namespace {

std::string stat(std::string_view name, std::string_view state, int threads = 1) {
  return "7 (" + std::string(name) + ") " + std::string(state) +
         " 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 " + std::to_string(threads) + " 21 4711 23\n";
}

TEST(Proc, AFieldHasItsNumberWhateverTheNameIs) {
  for (const char* name : {"train", ") S 1 2 (", "a b\n) c", ""}) {
    EXPECT_EQ(stat_field(stat(name, "R"), 3), "R") << name;
    EXPECT_EQ(stat_field(stat(name, "R"), 4), "4") << name;
    EXPECT_EQ(stat_field(stat(name, "R"), 23), "23") << name;
    EXPECT_EQ(stat_field(stat(name, "R"), 24), "") << name;
    EXPECT_EQ(start_ticks(stat(name, "R")), 4711U) << name;
  }
  EXPECT_EQ(stat_field("", 3), "");
}

TEST(Proc, AStartTimeIsAWholeNumber) {
  EXPECT_EQ(start_ticks(""), std::nullopt);
  EXPECT_EQ(start_ticks("7 (train) S 1 2"), std::nullopt);
  EXPECT_EQ(start_ticks("7 (train) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 x"), std::nullopt);
  EXPECT_EQ(start_ticks("7 (train) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 -1 2"), std::nullopt);
}

TEST(Proc, AZombieIsNotAliveUnlessItHasThreads) {
  EXPECT_TRUE(is_alive(stat("train", "S")));
  for (const char* state : {"Z", "X", "x"}) {
    EXPECT_FALSE(is_alive(stat("train", state))) << state;
    EXPECT_TRUE(is_alive(stat("train", state, 2))) << state;
  }
  EXPECT_FALSE(is_alive("7 (train) Z 1"));
  EXPECT_TRUE(is_alive("7 () Z 1) R 1"));
  EXPECT_FALSE(is_alive(""));
}

TEST(Proc, TheUserLineHasFourNumbers) {
  using Uids = std::array<std::uint32_t, 4>;
  EXPECT_EQ(uids("Name:\tx\nUid:\t1000\t0\t1\t2\nGid:\t5\t5\t5\t5\n"), (Uids{1000, 0, 1, 2}));
  EXPECT_EQ(uids("Name:\tx\nUid:\t4294967295\t0\t0\t0"), (Uids{4294967295, 0, 0, 0}));
  for (const char* bad :
       {"", "Uid:\t5\t", "Name:\tx\nUid:\t", "Name:\tx\nUid:\t5", "Name:\tx\nUid:\t-1\t0\t0\t0\n",
        "Name:\tx\nUid:\t4294967296\t0\t0\t0\n", "Name:\tx\\nUid:\t5\t0\t0\t0\n"}) {
    EXPECT_EQ(uids(bad), std::nullopt) << bad;
  }
}

TEST(Proc, APathNamesTheProcess) { EXPECT_EQ(path("/proc", 7, "stat"), "/proc/7/stat"); }

}  // namespace
}  // namespace gpumeter::proc

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
