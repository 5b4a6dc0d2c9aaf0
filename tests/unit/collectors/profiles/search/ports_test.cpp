#include "collectors/profiles/search/ports.hpp"

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/fakes/tree.hpp"

namespace gpumeter::profiles {
namespace {

constexpr std::uint32_t kAlice = 1000;
constexpr std::uint32_t kBob = 1001;

/// Sockets and processes in a /proc of the test's.
class Machine {
 public:
  void listens(std::uint16_t port, int inode, std::uint32_t uid, const char* address = "0100007F") {
    char row[160];
    std::snprintf(row, sizeof row,
                  "   0: %s:%04X 00000000:0000 0A 00000000:00000000 00:00000000 00000000  %u        0 %d 1\n",
                  address, static_cast<unsigned>(port), uid, inode);
    table_ += row;
    tree_.write("net/tcp", table_);
  }
  void closes_all() { tree_.write("net/tcp", table_ = ""); }
  void process(int pid, std::uint32_t uid, int start, std::initializer_list<int> sockets) {
    const std::string folder = std::to_string(pid);
    const std::string owner = std::to_string(uid);
    tree_.remove(folder);
    tree_.write(folder + "/stat",
                folder + " (x) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 " + std::to_string(start) + " 0");
    tree_.write(folder + "/status",
                "Name:\tx\nUid:\t" + owner + "\t" + owner + "\t" + owner + "\t" + owner + "\n");
    tree_.write(folder + "/fd/0", "-> /dev/null");
    for (const int socket : sockets) {
      tree_.write(folder + "/fd/" + std::to_string(socket), "-> socket:[" + std::to_string(socket) + "]");
    }
  }
  void ends(int pid) { tree_.remove(std::to_string(pid)); }

  /// The processes and their ports, then the ports that are shared and hidden.
  std::string found() {
    const auto ports = search_.find();
    if (!ports) return ports.error().message();
    std::string text;
    for (const PortHolder& each : ports->holders) {
      text += std::to_string(each.process.pid) + " of " + std::to_string(each.process.uid) + " on " +
              std::to_string(each.listener.port) + "; ";
    }
    for (const std::uint16_t port : ports->shared) text += "shared " + std::to_string(port) + "; ";
    for (const std::uint16_t port : ports->hidden) text += "hidden " + std::to_string(port) + "; ";
    return text;
  }
  std::string check(const tcp::Listener& listener) const {
    const auto checked = check_listener(tree_.path(), listener);
    return checked ? "" : checked.error().message();
  }

 private:
  Tree tree_ = make_tree({{"net/tcp", ""}});
  std::string table_;
  SystemClock clock_;
  PortSearch search_{tree_.path(), {9012, 9013}, clock_};
};

TEST(PortSearch, FindsTheProcessOfASocket) {
  Machine machine;
  machine.process(10, kAlice, 5, {501});
  machine.process(11, kBob, 5, {502, 503});
  machine.listens(9012, 501, kAlice);
  machine.listens(9013, 502, kBob);
  machine.listens(22, 503, kBob);
  EXPECT_EQ(machine.found(), "10 of 1000 on 9012; 11 of 1001 on 9013; ");
  machine.closes_all();
  EXPECT_EQ(machine.found(), "");
}

TEST(PortSearch, TakesTheOldestOfThoseThatInheritedTheSocket) {
  Machine machine;
  machine.process(10, kAlice, 9, {501});  // a child, whose number is lower because the numbers began again
  machine.process(20, kAlice, 5, {501});
  machine.process(21, kAlice, 9, {501});
  machine.listens(9012, 501, kAlice);
  EXPECT_EQ(machine.found(), "20 of 1000 on 9012; ");
  machine.ends(20);
  EXPECT_EQ(machine.found(), "10 of 1000 on 9012; ");
  machine.process(10, kAlice, 30, {});  // another process with the number
  EXPECT_EQ(machine.found(), "21 of 1000 on 9012; ");
}

TEST(PortSearch, UsesNoDoubtfulPort) {
  Machine machine;
  machine.process(10, kAlice, 5, {501});
  machine.process(11, kAlice, 5, {502});
  machine.listens(9012, 501, kAlice);
  machine.listens(9012, 502, kAlice);  // SO_REUSEPORT
  machine.process(12, kBob, 5, {503});
  machine.listens(9013, 503, kAlice);  // Alice's socket, which only a process of Bob's has open
  EXPECT_EQ(machine.found(), "shared 9012; hidden 9013; ");
  machine.closes_all();
  machine.listens(9012, 501, kAlice, "0500000A");
  machine.listens(9013, 502, kAlice, "0200007F");  // 127.0.0.2
  EXPECT_EQ(machine.found(), "") << "the doors connect to 127.0.0.1";
}

TEST(PortSearch, KnowsPyTorchsDebugServerByItsThreads) {
  const Tree tree = make_tree(
      {{"net/tcp",
        "   0: 0100007F:2334 00000000:0000 0A 00000000:00000000 00:00000000 00000000  7        0 501 1\n"},
       {"10/stat", "10 (x) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 5 0"},
       {"10/status", "Name:\tx\nUid:\t7\t7\t7\t7\n"},
       {"10/fd/3", "-> socket:[501]"},
       {"10/task/10/comm", "python\n"}});
  const SystemClock clock;
  PortSearch search(tree.path(), {9012}, clock);
  EXPECT_FALSE(search.find()->holders.at(0).is_debug_server);
  tree.write("10/task/11/comm", "pt_workerserver\n");  // it starts a moment after the socket
  EXPECT_TRUE(search.find()->holders.at(0).is_debug_server);
}

TEST(PortSearch, ChecksTheSocketAgain) {
  Machine machine;
  machine.listens(9012, 501, kAlice);
  const tcp::Listener listener{9012, "127.0.0.1", 501, kAlice, 0};
  EXPECT_EQ(machine.check(listener), "");
  machine.listens(9012, 502, kAlice);
  EXPECT_EQ(machine.check(listener), "port 9012 now belongs to another process as well");
  machine.closes_all();
  EXPECT_EQ(machine.check(listener), "the process no longer listens on port 9012");
}

}  // namespace
}  // namespace gpumeter::profiles
