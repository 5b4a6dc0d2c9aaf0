#include "daemon/profiles/callers.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <deque>
#include <string>

namespace gpumeter {
namespace {

/// The daemon's end, clients of this process, and the uid that counts as theirs.
class Desk {
 public:
  Desk() : listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
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
  Desk desk;
  for (std::size_t i = 0; i < Callers::kMostOfUser; ++i) EXPECT_EQ(Desk::end_of(desk.ask(1000)), "");
  for (std::size_t i = 0; i < 3 * Callers::kMostOfUser; ++i) {
    EXPECT_EQ(Desk::end_of(desk.ask(1000)), "refused too many requests of yours are under way\n");
  }
  EXPECT_EQ(Desk::end_of(desk.ask(0)), "");
}

TEST(Callers, AUserWithoutAPlaceGetsOneOfTheUserWithTheMost) {
  Desk desk;
  std::vector<int> crowd;
  for (std::uint32_t user = 1; user <= 4; ++user) {
    for (std::size_t i = 0; i < Callers::kMostOfUser; ++i) crowd.push_back(desk.ask(user));
  }
  ASSERT_EQ(desk.callers.numbers().size(), Callers::kMost);
  desk.callers.bind_to(desk.callers.numbers().front(), 7);
  EXPECT_EQ(Desk::end_of(desk.ask(0)), "");
  EXPECT_EQ(desk.callers.numbers().size(), Callers::kMost);
  EXPECT_EQ(Desk::end_of(crowd[0]), "") << "has a request";
  EXPECT_EQ(Desk::end_of(crowd[1]), "closed");
  EXPECT_EQ(Desk::end_of(crowd[2]), "");
}

}  // namespace
}  // namespace gpumeter
