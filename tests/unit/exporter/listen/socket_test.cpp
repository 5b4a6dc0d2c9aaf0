#include "exporter/listen/socket.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/descriptor.hpp"
#include "base/vsock.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

std::vector<std::string> texts(const Listening& listening) {
  std::vector<std::string> result;
  for (const ListenSocket& socket : listening.sockets) {
    std::string text = socket.endpoint().text();
    result.push_back(text.substr(0, text.rfind(':')));
  }
  return result;
}

std::string error_of(std::string_view address) {
  const auto listening = listen_on(address);
  return listening ? "it listens" : listening.error().message();
}

bool has_ipv6() { return bool(listen_on("[::1]:0")); }

TEST(ListenAddress, TakesTheAddressAndTheFreePortItAskedFor) {
  const auto listening = listen_on("127.0.0.1:0");
  ASSERT_TRUE(listening) << listening.error().message();
  ASSERT_EQ(listening->sockets.size(), 1U);
  const Endpoint& endpoint = listening->sockets[0].endpoint();
  EXPECT_GT(endpoint.port(), 0);
  EXPECT_EQ(endpoint.text(), "127.0.0.1:" + std::to_string(endpoint.port()));
}

TEST(ListenAddress, TakesLocalhostInBothFamiliesAtOnePort) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  const auto listening = listen_on("localhost:0");
  ASSERT_TRUE(listening) << listening.error().message();
  EXPECT_EQ(texts(*listening), (std::vector<std::string>{"127.0.0.1", "[::1]"}));
  EXPECT_EQ(listening->sockets[0].endpoint().port(), listening->sockets[1].endpoint().port());
}

/// Otherwise a process on the other half of localhost would receive gpumeter's requests.
TEST(ListenAddress, TakesAllOfLocalhostOrNothing) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  for (const char* half : {"127.0.0.1", "[::1]"}) {
    const auto taken = listen_on(std::string(half) + ":0");
    const std::string port = std::to_string(taken->sockets[0].endpoint().port());
    EXPECT_EQ(error_of("localhost:" + port),
              "cannot listen on " + std::string(half) + ":" + port + ": Address already in use");
  }
}

TEST(ListenAddress, TakesNoPartOfAllAddressesIfTheirPortIsTaken) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  const auto taken = listen_on("[::1]:0");
  const std::string port = std::to_string(taken->sockets[0].endpoint().port());
  EXPECT_EQ(error_of(":" + port), "cannot listen on [::]:" + port + ": Address already in use");
  EXPECT_EQ(error_of("[::]:" + port), "cannot listen on [::]:" + port + ": Address already in use");
}

TEST(ListenAddress, TakesEveryAddressOfTheMachine) {
  const auto all = listen_on(":0");
  ASSERT_TRUE(all) << all.error().message();
  ASSERT_EQ(all->sockets.size(), 1U);
  const auto ipv4 = listen_on("0.0.0.0:0");
  ASSERT_TRUE(ipv4) << ipv4.error().message();
  EXPECT_EQ(texts(*ipv4), std::vector<std::string>{"0.0.0.0"});
}

TEST(ListenAddress, NamesTheAddressThatIsTaken) {
  const auto taken = listen_on("127.0.0.1:0");
  const std::string address = taken->sockets[0].endpoint().text();
  EXPECT_EQ(error_of(address), "cannot listen on " + address + ": Address already in use");
}

TEST(ListenAddress, KnowsWhichAddressesSocketsServe) {
  const auto local = listen_on("127.0.0.1:0");
  const std::string port = std::to_string(local->sockets[0].endpoint().port());
  const auto is_local = [&](const std::string& address) { return is_served(address, local->sockets); };
  EXPECT_TRUE(is_local("localhost:" + port));
  EXPECT_TRUE(is_local("127.0.0.1:" + port));
  EXPECT_FALSE(is_local(":" + port));
  EXPECT_FALSE(is_local("127.0.0.2:" + port));
  EXPECT_FALSE(is_local("localhost:1"));
  EXPECT_FALSE(is_local("gpumeter.invalid:" + port));
}

TEST(ListenAddress, SaysWhatIsWrongWithAnAddress) {
  const std::string hint =
      "; write host:port, such as localhost:10478, :10478 or [::1]:10478, unix:/path or vsock:CID:PORT";
  EXPECT_EQ(error_of("localhost"), "listen address \"localhost\": the port is missing" + hint);
  EXPECT_EQ(error_of("127.0.0.1:http"),
            "listen address \"127.0.0.1:http\": the port must be a number from 0 to 65535" + hint);
  EXPECT_EQ(error_of("127.0.0.1:65536"),
            "listen address \"127.0.0.1:65536\": the port must be a number from 0 to 65535" + hint);
  EXPECT_EQ(error_of("::1:80"), "listen address \"::1:80\": an IPv6 address must be in brackets" + hint);
  EXPECT_EQ(error_of("192.0.2.1:0"), "cannot listen on 192.0.2.1:0: Cannot assign requested address");
}

struct UnixAddress : testing::Test {
  /// Whether connect(2) to the path succeeds.
  bool answers() const {
    const Endpoint endpoint = Endpoint::of_path(path);
    const Descriptor client(socket(AF_UNIX, SOCK_STREAM, 0));
    return connect(client.number(), reinterpret_cast<const sockaddr*>(&endpoint.address), endpoint.length) ==
           0;
  }
  bool exists() const { return std::filesystem::exists(std::filesystem::symlink_status(path)); }
  /// Leaves the file of a socket on which no process listens.
  void leave_over() const {
    auto listening = listen_on(address);
    ASSERT_TRUE(listening) << listening.error().message();
    const std::string other = path + ".other";
    std::filesystem::rename(path, other);
    listening->sockets.clear();
    std::filesystem::rename(other, path);
  }

  Tree folder{{}};
  const std::string path = folder.path() + "/http.sock";
  const std::string address = "unix:" + path;
};

TEST_F(UnixAddress, IsOneLocalSocketForEveryUserAndIsRemovedWithIt) {
  {
    const mode_t before = umask(0077);
    const auto listening = listen_on(address);
    umask(before);
    ASSERT_TRUE(listening) << listening.error().message();
    ASSERT_EQ(listening->sockets.size(), 1U);
    const Endpoint& endpoint = listening->sockets[0].endpoint();
    EXPECT_EQ(endpoint.text(), address);
    EXPECT_EQ(endpoint.port(), 0);
    EXPECT_TRUE(answers());
    EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0666));
    EXPECT_TRUE(is_served(address, listening->sockets));
    EXPECT_FALSE(is_served("unix:" + folder.path(), listening->sockets));
    EXPECT_FALSE(is_served("localhost:10478", listening->sockets));
  }
  EXPECT_FALSE(exists());
}

TEST_F(UnixAddress, ReplacesAFileOnWhichNobodyListens) {
  leave_over();
  ASSERT_TRUE(exists());
  ASSERT_FALSE(answers());
  const auto listening = listen_on(address);
  ASSERT_TRUE(listening) << listening.error().message();
  EXPECT_TRUE(answers());
}

TEST_F(UnixAddress, LeavesASocketToTheProcessThatListensOnIt) {
  const auto first = listen_on(address);
  EXPECT_EQ(error_of(address), "cannot listen on " + address + ": another process listens on this socket");
  EXPECT_TRUE(answers());
}

TEST_F(UnixAddress, LeavesOtherFilesAlone) {
  std::ofstream(path) << "text";
  EXPECT_EQ(error_of(address),
            "cannot listen on " + address + ": the path names a file that is not a socket");
  EXPECT_TRUE(exists());
  EXPECT_EQ(error_of("unix:" + folder.path() + "/none/http.sock"), "cannot listen on unix:" + folder.path() +
                                                                       "/none/http.sock: " + folder.path() +
                                                                       "/none: No such file or directory");
}

TEST_F(UnixAddress, LeavesAFileThatReplacedItsOwn) {
  {
    const auto listening = listen_on(address);
    std::filesystem::remove(path);
    std::ofstream(path) << "text";
  }
  EXPECT_TRUE(exists());
}

TEST(ListenAddress, TakesOnlyAbsolutePathsThatFit) {
  const std::string hint =
      "; write host:port, such as localhost:10478, :10478 or [::1]:10478, unix:/path or vsock:CID:PORT";
  const std::string longest = "unix:/" + std::string(107, 'x');
  EXPECT_EQ(error_of("unix:run/x"), "listen address \"unix:run/x\": the path must be absolute" + hint);
  EXPECT_EQ(error_of("unix:"), "listen address \"unix:\": the path must be absolute" + hint);
  EXPECT_EQ(error_of(longest), "listen address \"" + longest + "\": the path has more than 107 bytes" + hint);
}

// vsock(7): the kernel's module may be missing, for all but one of these.
TEST(ListenAddress, TakesVirtualMachines) {
  const auto listening = listen_on("vsock::47117");
  if (!listening) GTEST_SKIP() << listening.error().message();
  ASSERT_EQ(listening->sockets.size(), 1U);
  EXPECT_EQ(listening->sockets[0].endpoint().text(), "vsock::47117");
  EXPECT_EQ(listening->sockets[0].endpoint().port(), 0);
  EXPECT_TRUE(is_served("vsock::47117", listening->sockets));
  EXPECT_FALSE(is_served("vsock::47118", listening->sockets));
  EXPECT_FALSE(is_served("localhost:47117", listening->sockets));
  EXPECT_EQ(error_of("vsock::47117"), "cannot listen on vsock::47117: Address already in use");
  EXPECT_EQ(error_of("vsock:77:47117"), "cannot listen on vsock:77:47117: Cannot assign requested address");
}

TEST(ListenAddress, SaysHowVirtualMachinesAreWritten) {
  const std::string hint =
      "; write host:port, such as localhost:10478, :10478 or [::1]:10478, unix:/path or vsock:CID:PORT";
  for (const std::string odd :
       {"vsock:3:x", "vsock:3:", "vsock:-1:9", "vsock:4294967296:9", "vsock::4294967295"}) {
    EXPECT_EQ(error_of(odd).substr(0, 15), "listen address ") << odd;
    EXPECT_TRUE(error_of(odd).ends_with(hint)) << error_of(odd);
  }
}

TEST(ListenSocket, RefusesWhatIsNoSocket) {
  EXPECT_EQ(ListenSocket::adopt(-1).error().message(), "descriptor -1 is not a socket: Bad file descriptor");
}

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

TEST(Peer, IsAVirtualMachine) {
  const auto peer = [](const char* text) {
    const sockaddr_vm address = *vsock::parse(text);
    return Peer::of(reinterpret_cast<const sockaddr*>(&address), -1);
  };
  EXPECT_EQ(peer("vsock:3:1024").key, peer("vsock:3:9").key);
  EXPECT_NE(peer("vsock:3:9").key, peer("vsock:4:9").key);
  EXPECT_TRUE(peer("vsock:3:9").is_remote);
  EXPECT_FALSE(peer("vsock:1:9").is_remote);
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
