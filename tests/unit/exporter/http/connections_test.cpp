#include "exporter/http/connections.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "tests/fakes/fake_clock.hpp"

namespace gpumeter {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Both ends of a connection; the book has one of them.
class Pair {
 public:
  explicit Pair(HttpConnections& book, std::string peer = {}) : book_(book) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0);
    entry_ = book.opened(ends_[0], std::move(peer));
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() {
    book_.closed(entry_);
    close(ends_[0]);
    close(ends_[1]);
  }

  HttpConnection* operator->() { return entry_; }
  int client() const { return ends_[1]; }
  bool is_ended() const {
    char byte = 0;
    return recv(ends_[1], &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
  }

 private:
  HttpConnections& book_;
  int ends_[2] = {};
  HttpConnection* entry_;
};

struct HttpConnectionsTest : testing::Test {
  bool ends_after(Pair& pair, Nanoseconds time) {
    clock.advance(time - milliseconds(1));
    book.look();
    const bool too_early = pair.is_ended();
    clock.advance(milliseconds(1));
    book.look();
    return !too_early && pair.is_ended();
  }

  FakeClock clock;
  HttpConnections book{clock, {.of_one_worker = 3, .of_one_peer = 2}};
};

TEST_F(HttpConnectionsTest, EndsAConnectionWithoutARequestIn10Seconds) {
  Pair silent(book);
  EXPECT_TRUE(ends_after(silent, seconds(10)));
}

TEST_F(HttpConnectionsTest, EndsAConnectionThatTricklesAsIfItWereSilent) {
  Pair slow(book);
  for (int i = 0; i < 9; ++i) {
    clock.advance(seconds(1));
    EXPECT_EQ(send(slow.client(), "x", 1, 0), 1);
    book.look();
  }
  EXPECT_TRUE(ends_after(slow, seconds(1)));
}

TEST_F(HttpConnectionsTest, KeepsAConnectionForTheNextRequestFor30Seconds) {
  Pair kept(book);
  kept->asked();
  kept->answered();
  EXPECT_TRUE(ends_after(kept, seconds(30)));
}

TEST_F(HttpConnectionsTest, EndsAnAnswerThatIsNotTakenIn60Seconds) {
  Pair slow(book);
  clock.advance(seconds(9));
  slow->asked();
  EXPECT_TRUE(ends_after(slow, seconds(60)));
}

TEST_F(HttpConnectionsTest, EndsTheOldestOfAWorkerInAnyStateForANewOne) {
  Pair answered(book);
  answered->asked();
  clock.advance(seconds(1));
  Pair kept(book);
  Pair silent(book);
  clock.advance(seconds(1));
  kept->asked();
  kept->answered();
  Pair first(book);
  EXPECT_TRUE(answered.is_ended());
  Pair second(book);
  EXPECT_TRUE(silent.is_ended());
  EXPECT_FALSE(kept.is_ended());
  EXPECT_FALSE(first.is_ended());
  EXPECT_FALSE(second.is_ended());
}

TEST_F(HttpConnectionsTest, EndsAClientThatLeftAfterItsAnswerBeforeTheOldest) {
  Pair oldest(book);
  clock.advance(seconds(1));
  Pair left(book);
  left->asked();
  left->answered();
  shutdown(left.client(), SHUT_WR);
  Pair half_closed(book);  // its request may not have been read yet
  shutdown(half_closed.client(), SHUT_WR);
  const Pair fourth(book);
  EXPECT_TRUE(left.is_ended());
  EXPECT_FALSE(oldest.is_ended());
  EXPECT_FALSE(half_closed.is_ended());
  const Pair fifth(book);
  EXPECT_TRUE(oldest.is_ended());
  EXPECT_FALSE(half_closed.is_ended());
}

TEST_F(HttpConnectionsTest, EndsTheOldestAnswerForOneTooMany) {
  Pair idle(book), first(book), second(book);
  first->asked();
  clock.advance(seconds(1));
  second->asked();
  EXPECT_EQ(book.answers(2), 2U);
  EXPECT_EQ(book.answers(1), 1U);
  EXPECT_TRUE(first.is_ended());
  EXPECT_FALSE(second.is_ended());
  EXPECT_FALSE(idle.is_ended());
}

TEST_F(HttpConnectionsTest, CountsEachWorkerAlone) {
  Pair here(book), there(book), everywhere(book);
  std::thread([&] {
    const Pair other(book);
    EXPECT_FALSE(other.is_ended());
  }).join();
  EXPECT_FALSE(here.is_ended());
}

TEST_F(HttpConnectionsTest, EndsTheOldestOfARemotePeerForANewOneOfTheSame) {
  Pair first(book, "a"), other(book, "b"), second(book, "a");
  std::thread([&] {
    const Pair third(book, "a");
    EXPECT_TRUE(first.is_ended());
    EXPECT_FALSE(second.is_ended());
    EXPECT_FALSE(third.is_ended());
  }).join();
  EXPECT_FALSE(other.is_ended());
}

TEST_F(HttpConnectionsTest, EndsAnIdleConnectionWhoseClientHasClosedItsHalf) {
  Pair left(book), asks(book);
  asks->asked();
  shutdown(left.client(), SHUT_WR);
  shutdown(asks.client(), SHUT_WR);
  book.look();
  EXPECT_FALSE(left.is_ended()) << "its request may have come just now";
  book.look();
  EXPECT_TRUE(left.is_ended());
  EXPECT_FALSE(asks.is_ended()) << "it waits for the answer";
  asks->answered();
  book.look();
  book.look();
  EXPECT_TRUE(asks.is_ended());
}

std::string peer_of(const char* text) {
  sockaddr_storage storage{};
  sockaddr_in ipv4{};
  sockaddr_in6 ipv6{};
  ipv4.sin_family = AF_INET;
  ipv6.sin6_family = AF_INET6;
  if (inet_pton(AF_INET, text, &ipv4.sin_addr) == 1) {
    std::memcpy(&storage, &ipv4, sizeof ipv4);
  } else if (inet_pton(AF_INET6, text, &ipv6.sin6_addr) == 1) {
    std::memcpy(&storage, &ipv6, sizeof ipv6);
  }
  return remote_peer(reinterpret_cast<const sockaddr*>(&storage));
}

TEST(RemotePeer, IsAnIpv4AddressOrAnIpv6Network) {
  EXPECT_EQ(peer_of("192.0.2.1"), std::string("\xC0\x00\x02\x01", 4));
  EXPECT_EQ(peer_of("::ffff:192.0.2.1"), peer_of("192.0.2.1"));
  EXPECT_NE(peer_of("192.0.2.1"), peer_of("192.0.2.2"));
  EXPECT_EQ(peer_of("2001:db8::1"), peer_of("2001:db8::2"));
  EXPECT_NE(peer_of("2001:db8::1"), peer_of("2001:db8:0:1::1"));
}

TEST(RemotePeer, IsNobodyOnThisMachine) {
  for (const char* local : {"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"})
    EXPECT_EQ(peer_of(local), "");
  const sockaddr unnamed{.sa_family = AF_UNIX, .sa_data = {}};
  EXPECT_EQ(remote_peer(&unnamed), "");
  EXPECT_EQ(remote_peer(nullptr), "");
}

}  // namespace
}  // namespace gpumeter
