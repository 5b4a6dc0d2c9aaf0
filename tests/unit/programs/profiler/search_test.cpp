#include "programs/profiler/search.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::profiles {
namespace {

/// Processes 10 and 11 with the sockets 501 and 502. Process 10 can be made to keep its readers waiting, as
/// the kernel does for some.
class Processes {
 public:
  ~Processes() { hang(false); }

  ProcessLook look(int pid, const WantedSockets& wanted) {
    std::unique_lock lock(mutex_);
    ++looks_;
    changed_.wait(lock, [&] { return pid != 10 || !hangs_; });
    const std::uint64_t own = pid == 10 ? 501 : 502;
    ProcessLook seen{{pid, 1000, start_}, {}};
    if (wanted.contains(own)) seen.sockets.insert(own);
    return seen;
  }
  void hang(bool does) {
    const std::lock_guard lock(mutex_);
    hangs_ = does;
    changed_.notify_all();
  }
  void are_others_now() {
    const std::lock_guard lock(mutex_);
    ++start_;
  }
  int looks() {
    const std::lock_guard lock(mutex_);
    return std::exchange(looks_, 0);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false;
  std::uint64_t start_ = 5;
  int looks_ = 0;
};

class SocketHoldersTest : public testing::Test {
 protected:
  /// The holders of both sockets; 0: unknown.
  std::pair<int, int> found() {
    holders_.look_for({{501, 1000}, {502, std::nullopt}});
    const auto pid = [](const SocketHolder* holder) { return holder == nullptr ? 0 : holder->pid; };
    return {pid(holders_.of(501)), pid(holders_.of(502))};
  }
  using Pids = std::pair<int, int>;

  const Tree tree_ = make_tree({{"10/stat", ""}, {"11/stat", ""}, {"self/stat", ""}});
  const SystemClock clock_;
  const std::shared_ptr<Processes> processes_ = std::make_shared<Processes>();
  SocketHolders holders_{tree_.path(), clock_, [all = processes_](int pid, const WantedSockets& wanted) {
                           return all->look(pid, wanted);
                         }};
};

TEST_F(SocketHoldersTest, LooksThroughTheProcessesForNewSocketsOnly) {
  EXPECT_EQ(found(), Pids(10, 11));
  EXPECT_EQ(processes_->looks(), 2);
  holders_.look_for({{501, 1000}});
  EXPECT_EQ(processes_->looks(), 1) << "whether the holder still lives";
  EXPECT_EQ(holders_.of(502), nullptr);
}

TEST_F(SocketHoldersTest, NoProcessWaitsForOneThatHangs) {
  processes_->hang(true);
  EXPECT_EQ(found(), Pids(0, 11));
  EXPECT_EQ(found(), Pids(0, 11));
  EXPECT_EQ(processes_->looks(), 4) << "the look that waits is not repeated";
  processes_->hang(false);
  while (found() != Pids(10, 11)) std::this_thread::yield();
}

TEST_F(SocketHoldersTest, AHolderThatHangsStaysInForce) {
  EXPECT_EQ(found(), Pids(10, 11));
  processes_->hang(true);
  EXPECT_EQ(found(), Pids(10, 11));
}

TEST_F(SocketHoldersTest, ANumberThatPassedToAnotherProcessIsLookedForAgain) {
  EXPECT_EQ(found(), Pids(10, 11));
  processes_->looks();
  processes_->are_others_now();
  EXPECT_EQ(found(), Pids(10, 11));
  EXPECT_EQ(processes_->looks(), 4);
}

bool has_safe_host_trace(std::string_view map, std::string_view package) {
  const Tree tree = make_tree({{"10/stat", "10 (x) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 5 0"},
                               {"10/status", "Name:\tx\nUid:\t7\t7\t7\t7\n"},
                               {"10/fd/3", "-> socket:[501]"}});
  tree.write("10/maps",
             "7f00-7f01 r-xp 00000000 08:01 12 /usr/lib/libc.so.6\n7f02-7f03 r-xp 00000000 08:01 13 " +
                 std::string(map) + "\n");
  tree.write("10/root/venv/site-packages/" + std::string(package) + "/METADATA", "");
  return look_at(tree.path(), 10, {{501, std::nullopt}}).process.has_safe_host_trace;
}

TEST(ProcessLook, KnowsTheFrameworksThatGoOnWhileTheHostIsTraced) {
  constexpr const char* kJax = "/venv/site-packages/jaxlib/_jax.so";
  EXPECT_FALSE(has_safe_host_trace(kJax, "jaxlib-0.8.1.dist-info"));
  EXPECT_FALSE(has_safe_host_trace(kJax, "jaxlib-0.10.1.dist-info"));
  EXPECT_TRUE(has_safe_host_trace(kJax, "jaxlib-0.10.2.dist-info"));
  EXPECT_TRUE(has_safe_host_trace(kJax, "jaxlib-1.0.0.dist-info"));
  EXPECT_FALSE(has_safe_host_trace(kJax, "jax-0.10.2.dist-info")) << "jaxlib's version is not known";
  EXPECT_FALSE(has_safe_host_trace("/venv/x.so", "jaxlib-0.10.2.dist-info")) << "it has not loaded jaxlib";
  EXPECT_TRUE(has_safe_host_trace("/venv/site-packages/tensorflow/libtensorflow_framework.so.2", "none"));
}

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
  Log log_{clock_, Logging{}};
  ServiceSearch search_{Settings{.profiler_ports = {{9012}, {9013}}}, tree_.path(), clock_, log_};
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
  Log log(clock, Logging{});
  ServiceSearch search({.profiler_ports = {{9012}}}, tree.path(), clock, log);
  EXPECT_FALSE(search.find()->holders.at(0).process.has_worker_server);
  tree.write("10/task/11/comm", "pt_workerserver\n");  // it starts a moment after the socket
  EXPECT_TRUE(search.find()->holders.at(0).process.has_worker_server);
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
  const Tree tree = make_tree(
      {{"net/unix", kTable},
       {"net/tcp",
        "   0: 0100007F:2334 00000000:0000 0A 00000000:00000000 00:00000000 00000000  8        0 601 1\n"},
       {"10/stat", "10 (x) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 5 0"},
       {"10/status", "Name:\tx\nUid:\t7\t8\t7\t7\n"},
       {"10/fd/3", "-> socket:[501]"},
       {"10/fd/4", "-> socket:[503]"},
       {"10/task/10/comm", "python\n"}});
  const SystemClock clock;
  Log log(clock, Logging{});
  Settings settings;
  settings.worker_sockets = {"/run/torch/*.sock", "/var/exact.sock"};
  ServiceSearch search(settings, tree.path(), clock, log);
  const auto ports = search.find();
  ASSERT_TRUE(ports);
  EXPECT_TRUE(ports->holders.empty()) << "it has no worker server yet";
  EXPECT_EQ(ports->hidden_sockets, std::set<std::string>{"/run/torch/other.sock"}) << "no process has it";
  tree.write("10/task/11/comm", "pt_workerserver\n");
  const auto later = search.find();
  ASSERT_TRUE(later);
  EXPECT_EQ(later->holders, (std::vector<PortHolder>{{{10, 8, 5, true}, {}, "/run/torch/a b.sock", false}}));
  tree.write("10/fd/5", "-> socket:[601]");
  settings.profiler_ports = {{9012}};
  const auto with_port = ServiceSearch(settings, tree.path(), clock, log).find();
  ASSERT_TRUE(with_port);
  ASSERT_EQ(with_port->holders.size(), 1U);
  EXPECT_EQ(with_port->holders[0].socket, "") << "its port is preferred";
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
