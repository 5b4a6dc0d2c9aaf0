#include "collectors/sources/tcp.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "base/descriptor.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::tcp {
namespace {

TEST(TcpListeners, FindsASocketOfThisProcessByItsInode) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(socket.number(), place, size), 0);
  ASSERT_EQ(getsockname(socket.number(), place, &size), 0);
  struct stat facts {};
  ASSERT_EQ(fstat(socket.number(), &facts), 0);
  const auto find = [&]() -> Listener {
    const Result<std::vector<Listener>> all = listeners_by_sock_diag();
    EXPECT_TRUE(all) << all.error().message();
    const auto found = all ? std::ranges::find(*all, facts.st_ino, &Listener::inode) : all->end();
    return found == all->end() ? Listener() : *found;
  };
  if (!listeners_by_sock_diag())
    GTEST_SKIP() << "this kernel has no sock_diag: " << listeners_by_sock_diag().error().message();
  EXPECT_EQ(find(), Listener()) << "it does not listen yet";
  ASSERT_EQ(listen(socket.number(), 1), 0);
  const Listener found = find();
  EXPECT_EQ(found.port, ntohs(address.sin_port));
  EXPECT_EQ(found.address, "127.0.0.1");
  EXPECT_EQ(found.uid, geteuid());
}

std::vector<std::byte> message(std::uint16_t type, const std::string& payload) {
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(payload.size()));
  header.nlmsg_type = type;
  std::vector<std::byte> bytes(NLMSG_SPACE(payload.size()));
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + NLMSG_HDRLEN, payload.data(), payload.size());
  return bytes;
}

/// struct inet_diag_msg of linux/inet_diag.h by its documented layout, and the attribute INET_DIAG_CGROUP_ID.
std::string listener(char family, std::uint16_t port, const std::string& source, std::uint32_t uid,
                     std::uint32_t inode, std::uint64_t cgroup) {
  std::string text(72, '\0');
  text[0] = family;
  text[1] = 10;  // TCP_LISTEN
  const std::uint16_t big = htons(port);
  std::memcpy(text.data() + 4, &big, sizeof big);
  source.copy(text.data() + 8, source.size());
  std::memcpy(text.data() + 64, &uid, sizeof uid);
  std::memcpy(text.data() + 68, &inode, sizeof inode);
  const std::uint16_t head[] = {12, 21};
  text.append(reinterpret_cast<const char*>(head), sizeof head);
  return text.append(reinterpret_cast<const char*>(&cgroup), sizeof cgroup);
}

TEST(TcpListeners, ReadsTheKernelsMessages) {
  std::vector<std::byte> datagram = message(20, listener(AF_INET, 8000, "", 1000, 77, 4242));
  const auto append = [&](const std::vector<std::byte>& more) {
    datagram.insert(datagram.end(), more.begin(), more.end());
  };
  append(message(20, listener(AF_INET6, 30000, std::string(15, '\0') + '\1', 0, 78, 1)));
  append(message(20, listener(AF_INET, 22, "\xC0\xA8\x01\x02", 0, 79, 1)));
  std::vector<Listener> found;
  EXPECT_TRUE(*take_listeners(datagram, found)) << "more follows";
  EXPECT_EQ(found, (std::vector<Listener>{
                       {8000, "127.0.0.1", 77, 1000, 4242}, {30000, "::1", 78, 0, 1}, {22, "", 79, 0, 1}}));
  EXPECT_FALSE(*take_listeners(message(NLMSG_DONE, std::string(4, '\0')), found));
  const int missing = -ENOENT;
  const std::string head(reinterpret_cast<const char*>(&missing), sizeof missing);
  for (const std::uint16_t type : {std::uint16_t{NLMSG_DONE}, std::uint16_t{NLMSG_ERROR}}) {
    const auto taken = take_listeners(message(type, head + std::string(16, '\0')), found);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().message(), "sock_diag: No such file or directory");
  }
  for (std::size_t size = 0; size < datagram.size(); ++size) {
    EXPECT_TRUE(take_listeners(std::span(datagram).first(size), found)) << "cut anywhere";
  }
}

TEST(TcpListeners, ReadsTheKernelsTables) {
  // From Linux 6.1: sockets on 127.0.0.1, ::1 and all addresses, addresses that loopback does not reach, a
  // connection, and a line that is cut.
  const std::string_view v4 =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:6D7C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 34567 1 "
      "ffff 100 0 0 10 0\n"
      "   1: 0100007F:6D7C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 34568 1 "
      "ffff 100 0 0 10 0\n"
      "   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1 "
      "ffff 100 0 0 10 0\n"
      "   3: 0500000A:6D7C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 34569 1 "
      "ffff 100 0 0 10 0\n"
      "   4: 00000000:6D7C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1002        0 34570 1 "
      "ffff 100 0 0 10 0\n"
      "   5: 0100007F:6D7C 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 34571 1 "
      "ffff 20 4 30 10 -1\n"
      "   6: 0100007F:6D7C 00000000:0000 0A";
  EXPECT_EQ(listeners_in(v4, false), (std::vector<Listener>{{28028, "127.0.0.1", 34567, 1000, 0},
                                                            {28028, "127.0.0.1", 34568, 1000, 0},
                                                            {22, "127.0.0.1", 12345, 0, 0},
                                                            {28028, "", 34569, 1001, 0},
                                                            {28028, "127.0.0.1", 34570, 1002, 0}}));
  const std::string_view v6 =
      "   0: 00000000000000000000000001000000:6D7C 00000000000000000000000000000000:0000 0A "
      "00000000:00000000 00:00000000 "
      "00000000  1000        0 44001 1 ffff 100 0 0 10 0\n"
      "   1: 000080FE00000000FF005450A9C6A1FE:6D7C 00000000000000000000000000000000:0000 0A "
      "00000000:00000000 00:00000000 "
      "00000000  1000        0 44002 1 ffff 100 0 0 10 0\n"
      "   2: 00000000000000000000000000000000:6D7C 00000000000000000000000000000000:0000 0A "
      "00000000:00000000 00:00000000 "
      "00000000  1003        0 44003 1 ffff 100 0 0 10 0\n";
  EXPECT_EQ(listeners_in(v6, true), (std::vector<Listener>{{28028, "::1", 44001, 1000, 0},
                                                           {28028, "", 44002, 1000, 0},
                                                           {28028, "::1", 44003, 1003, 0}}));
}

TEST(TcpListeners, ReadsTheTablesOfATree) {
  const Tree tree = make_tree(
      {{"net/tcp",
        "   0: 0200007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  7 0 55 1\n"}});
  const auto found = listeners(tree.path());
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(*found, (std::vector<Listener>{{8000, "127.0.0.2", 55, 7, 0}}));
  EXPECT_FALSE(listeners(tree / "nothing"));
}

TEST(TcpHolders, AreTheProcessesWithTheSocketOpen) {
  const Tree tree = make_tree({{"10/fd/0", "-> /dev/null"},
                               {"10/fd/3", "-> socket:[501]"},
                               {"10/fd/4", "-> socket:[502]"},
                               {"10/fd/5", "-> socket:[x]"}});
  EXPECT_EQ(sockets_of(tree.path(), 10, {501, 777}).sockets, (std::set<std::uint64_t>{501}));
  EXPECT_EQ(sockets_of(tree.path(), 10, {777}).error, 0);
  EXPECT_EQ(sockets_of(tree.path(), 11, {501}).error, ENOENT);
}

}  // namespace
}  // namespace gpumeter::tcp
