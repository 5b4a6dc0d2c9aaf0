#include "programs/profiler/asking.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <deque>
#include <string>

namespace gpumeter::profiles {
namespace {

/// The daemon's end, clients of this process, and the uid that counts as theirs.
class Clients {
 public:
  Clients() : listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr family{};
    family.sa_family = AF_UNIX;
    bind(listener_.number(), &family, sizeof family.sa_family);  // the kernel chooses an abstract name
    getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&address_), &size_);
    listen(listener_.number(), 128);
  }

  /// Returns whether the daemon keeps the connection of a client of this owner.
  int ask(std::uint32_t owner) {
    owner_ = owner;
    const int client = clients_.emplace_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)).number();
    EXPECT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&address_), size_), 0);
    now_ += Nanoseconds(1);
    callers.accept_from(listener_.number(), now_);
    return client;
  }
  /// Empty: the connection is open.
  static std::string end_of(int client) {
    char text[200];
    const ssize_t size = recv(client, text, sizeof text, MSG_DONTWAIT);
    if (size < 0) return "";
    return size == 0 ? "closed" : std::string(text, static_cast<std::size_t>(size));
  }

  Callers callers{[this](std::uint32_t) { return owner_; }};

 private:
  Descriptor listener_;
  sockaddr_storage address_{};
  socklen_t size_ = sizeof address_;
  std::deque<Descriptor> clients_;
  std::uint32_t owner_ = 0;
  Nanoseconds now_{};
};

// The attack: each uid of a user namespace holds as many connections as one user may.
TEST(Callers, TheUidsOfAUserNamespaceAreOneUser) {
  Clients clients;
  for (std::size_t i = 0; i < Callers::kMostOfUser; ++i) EXPECT_EQ(Clients::end_of(clients.ask(1000)), "");
  for (std::size_t i = 0; i < 3 * Callers::kMostOfUser; ++i) {
    EXPECT_EQ(Clients::end_of(clients.ask(1000)), "refused too many requests of yours are under way\n");
  }
  EXPECT_EQ(Clients::end_of(clients.ask(0)), "");
}

TEST(Callers, AUserWithoutAPlaceGetsOneOfTheUserWithTheMost) {
  Clients clients;
  std::vector<int> crowd;
  for (std::uint32_t user = 1; user <= 4; ++user) {
    for (std::size_t i = 0; i < Callers::kMostOfUser; ++i) crowd.push_back(clients.ask(user));
  }
  ASSERT_EQ(clients.callers.numbers().size(), Callers::kMost);
  clients.callers.bind_to(clients.callers.numbers().front(), 7);
  EXPECT_EQ(Clients::end_of(clients.ask(0)), "");
  EXPECT_EQ(clients.callers.numbers().size(), Callers::kMost);
  EXPECT_EQ(Clients::end_of(crowd[0]), "") << "has a request";
  EXPECT_EQ(Clients::end_of(crowd[1]), "closed");
  EXPECT_EQ(Clients::end_of(crowd[2]), "");
}

TEST(Asking, ReadsWhatItWrites) {
  Asked asked;
  asked.run = "bert large";
  asked.extent.duration = std::chrono::milliseconds(1500);
  asked.folder = "/tmp/t";
  EXPECT_EQ(text_of(asked), "run bert large\nmilliseconds 1500\nfolder /tmp/t\n\n");
  const auto read = parse_asked(text_of(asked));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->run, "bert large");
  EXPECT_EQ(read->extent.duration, asked.extent.duration);
  for (const char* text : {"", "\n", "run a\n", "run a\npid 1\n\n", "pid 0\n\n", "run a\nsteps 1001\n\n",
                           "run a\nmilliseconds 300001\n\n", "run a\nnonsense 1\n\n", "run\n\n"}) {
    EXPECT_FALSE(parse_asked(text)) << text;
  }
}

TEST(Asking, NamesFilesThatNobodyCanPredict) {
  const auto one = path_in("/tmp/", "a/b =#..");
  const auto two = path_in("/tmp", "a/b =#..");
  ASSERT_TRUE(one && two);
  EXPECT_TRUE(one->starts_with("/tmp/gpumeter_a-b-----_") && one->ends_with(".json")) << *one;
  EXPECT_NE(*one, *two);
  EXPECT_FALSE(path_in("relative", "a"));
  EXPECT_FALSE(path_in("/tmp/a=b", "a"));
}

}  // namespace
}  // namespace gpumeter::profiles
