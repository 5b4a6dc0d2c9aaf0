#include "collectors/profiles/search/sockets.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter::profiles {
namespace {

constexpr const char* kTable =
    "Num       RefCount Protocol Flags    Type St Inode Path\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01   501 /run/torch/a b.sock\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01 60002 /run/torch/other.sock\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01   503 /run/torch/sub/c.sock\n"
    "0000000000000000: 00000003 00000000 00000000 0001 03   504 /run/torch/a b.sock\n"      // a connection
    "0000000000000000: 00000002 00000000 00010000 0005 01   505 /run/torch/packets.sock\n"  // SOCK_SEQPACKET
    "0000000000000000: 00000002 00000000 00010000 0001 01   506 @/run/torch/abstract.sock\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01   507\n"
    "0000000000000000: 00000002 00000000 00010000 0001 01   x8 /run/torch/d.sock\n";

TEST(SocketSearch, ListsListeningStreams) {
  EXPECT_EQ(unix_listeners_in(kTable), (std::vector<UnixListener>{{"/run/torch/a b.sock", 501},
                                                                  {"/run/torch/other.sock", 60002},
                                                                  {"/run/torch/sub/c.sock", 503}}));
  EXPECT_EQ(unix_listeners_in("garbage\n\n 0: 1 2 00010000"), std::vector<UnixListener>());
}

TEST(SocketSearch, FindsWorkerServersByPatternAndThread) {
  const Tree tree = make_tree({{"net/unix", kTable},
                               {"10/stat", "10 (x) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 5 0"},
                               {"10/status", "Name:\tx\nUid:\t7\t8\t7\t7\n"},
                               {"10/fd/3", "-> socket:[501]"},
                               {"10/fd/4", "-> socket:[503]"},
                               {"10/task/10/comm", "python\n"}});
  const SystemClock clock;
  SocketSearch search(tree.path(), {"/run/torch/*.sock", "/var/exact.sock"}, clock);
  Ports ports;
  ASSERT_TRUE(search.find(ports));
  EXPECT_TRUE(ports.holders.empty()) << "it has no worker server yet";
  EXPECT_EQ(ports.hidden_sockets, std::set<std::string>{"/run/torch/other.sock"}) << "no process has it";
  tree.write("10/task/11/comm", "pt_workerserver\n");
  Ports later;
  ASSERT_TRUE(search.find(later));
  EXPECT_EQ(later.holders, (std::vector<PortHolder>{{{10, 8}, {}, true, "/run/torch/a b.sock", false}}));
  Ports with_port;
  with_port.holders.push_back({{10, 8}, {9012, "127.0.0.1", 77, 8, 0}, true});
  ASSERT_TRUE(search.find(with_port));
  EXPECT_EQ(with_port.holders.size(), 1U) << "its port is preferred";
}

TEST(SocketSearch, AsksTheKernelWhoListens) {
  const Tree tree = make_tree({});
  const std::string path = tree / "worker.sock";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const Descriptor server(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(server.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(connect_to_socket(path, geteuid()).error().message(), path + ": Connection refused");
  ASSERT_EQ(listen(server.number(), 1), 0);
  EXPECT_TRUE(connect_to_socket(path, geteuid()));
  EXPECT_EQ(connect_to_socket(path, geteuid() + 1).error().message(),
            path + ": now belongs to a process of uid " + std::to_string(geteuid()));
  EXPECT_EQ(connect_to_socket(tree / "none", 0).error().message(),
            tree / "none" + ": No such file or directory");
  const std::string long_path(200, 'x');
  EXPECT_EQ(connect_to_socket(long_path, 0).error().message(), long_path + ": is too long for a socket");
}

}  // namespace
}  // namespace gpumeter::profiles
