#include "collectors/servers/listeners.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "base/descriptor.hpp"

namespace gpumeter::servers {
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
    const Result<std::vector<Listener>> all = tcp_listeners();
    EXPECT_TRUE(all) << all.error().message();
    const auto found = all ? std::ranges::find(*all, facts.st_ino, &Listener::inode) : all->end();
    return found == all->end() ? Listener() : *found;
  };
  if (!tcp_listeners()) GTEST_SKIP() << "this kernel has no sock_diag: " << tcp_listeners().error().message();
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
  EXPECT_TRUE(take_listeners(datagram, found)) << "more follows";
  EXPECT_EQ(found, (std::vector<Listener>{
                       {8000, "127.0.0.1", 77, 1000, 4242}, {30000, "::1", 78, 0, 1}, {22, "", 79, 0, 1}}));
  EXPECT_FALSE(take_listeners(message(NLMSG_DONE, std::string(4, '\0')), found));
  EXPECT_FALSE(take_listeners(message(NLMSG_ERROR, std::string(20, '\0')), found));
  for (std::size_t size = 0; size < datagram.size(); ++size) {
    take_listeners(std::span(datagram).first(size), found);  // cut anywhere
  }
}

}  // namespace
}  // namespace gpumeter::servers
