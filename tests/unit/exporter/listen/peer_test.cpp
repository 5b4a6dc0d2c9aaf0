#include "exporter/listen/peer.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstring>

#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

Peer peer_of(const char* text) {
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
  return Peer::of(reinterpret_cast<const sockaddr*>(&storage), -1);
}

TEST(Peer, IsAnIpv4AddressOrAnIpv6Network) {
  EXPECT_EQ(peer_of("192.0.2.1"), (Peer{std::string("\xC0\x00\x02\x01", 4), true}));
  EXPECT_EQ(peer_of("::ffff:192.0.2.1"), peer_of("192.0.2.1"));
  EXPECT_NE(peer_of("192.0.2.1"), peer_of("192.0.2.2"));
  EXPECT_EQ(peer_of("2001:db8::1"), peer_of("2001:db8::2"));
  EXPECT_NE(peer_of("2001:db8::1"), peer_of("2001:db8:0:1::1"));
}

TEST(Peer, IsNotRemoteOnThisMachine) {
  for (const char* local : {"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"})
    EXPECT_FALSE(peer_of(local).is_remote) << local;
  EXPECT_NE(peer_of("127.0.0.1"), peer_of("127.0.0.2"));
  EXPECT_EQ(Peer::of(nullptr, -1), Peer());
}

TEST(Peer, IsTheUserOfAUnixSocket) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const sockaddr unnamed{.sa_family = AF_UNIX, .sa_data = {}};
  EXPECT_EQ(Peer::of(&unnamed, ends[0]), (Peer{std::to_string(getuid()), false}));
  EXPECT_EQ(Peer::of(&unnamed, -1), Peer());
  close(ends[0]);
  close(ends[1]);
}

// The attack: uids of one user namespace. Root's containers (LXD) do not pay as root.
TEST(Peer, IsTheOwnerOfASubordinateUid) {
  Tree tree{{"subuid", "1000:100000:65536\n0:1000000:131072\n"}};
  UserOwners owners(tree / "subuid");
  owners.start();
  owners.wait(std::chrono::minutes(1));
  EXPECT_EQ(Peer::of_uid(100'001, &owners), Peer::of_uid(165'535, &owners));
  EXPECT_EQ(Peer::of_uid(100'001, &owners), Peer::of_uid(1000, &owners));
  EXPECT_NE(Peer::of_uid(100'001, &owners), Peer::of_uid(1001, &owners));
  EXPECT_NE(Peer::of_uid(1'000'001, &owners), Peer::of_uid(0, &owners));
  EXPECT_NE(Peer::of_uid(100'001, nullptr), Peer::of_uid(165'535, nullptr));
}

}  // namespace
}  // namespace gpumeter
