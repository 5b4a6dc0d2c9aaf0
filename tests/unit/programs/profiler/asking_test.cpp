#include "programs/profiler/asking.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <deque>
#include <string>

#include "programs/profiler/kineto.hpp"
#include "programs/profiler/services.hpp"
#include "tests/fakes/tree.hpp"

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

constexpr std::uint32_t kAlice = 1000;
constexpr std::uint32_t kBob = 1001;

/// Processes that poll, in a /proc of the test's.
class Machine {
 public:
  void process(int pid, std::uint32_t uid, const std::string& numbers, const std::string& group,
               const std::string& run = "") {
    const std::string folder = std::to_string(pid);
    tree_.write(folder + "/stat", folder + " (x) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 77 0");
    tree_.write(folder + "/status", "Name:\tx\nNSpid:\t" + numbers + "\n");
    tree_.write(folder + "/cgroup", "0::" + group + "\n");
    if (uid != 0)
      door_.hear({pid, uid, "a"}, {kineto::Message::Kind::request, true}, Nanoseconds(0), Nanoseconds(0));
    if (!run.empty()) {
      runs_.runs.push_back({name_of(uid), run});
      runs_.processes.push_back({{uid, pid, 77}, {name_of(uid), run}});
    }
  }

  Result<Targets::Found> find(const Asked& asked, const Asker& asker) {
    Targets targets({tree_.path(), [](std::uint32_t uid) { return uid; }, name_of, users}, {&door_});
    return targets.find(asked, asker, std::make_shared<const jobs::RunList>(runs_), Nanoseconds(1));
  }

  std::vector<int> first_of(const std::string& run, const std::set<int>& preferred) {
    return first_of(door_, run, preferred);
  }
  std::vector<int> first_of(Door& door, const std::string& run, const std::set<int>& preferred) {
    Targets targets({tree_.path(), [](std::uint32_t uid) { return uid; }, name_of, users}, {&door});
    std::vector<int> pids;
    for (const Member& member : targets
                                    .first_of({"alice", run}, preferred,
                                              std::make_shared<const jobs::RunList>(runs_), Nanoseconds(1))
                                    .members) {
      pids.push_back(member.pid);
    }
    return pids;
  }

  static std::string name_of(std::uint32_t uid) { return uid == kAlice ? "alice" : std::to_string(uid); }

  std::vector<std::string> users;

 private:
  Tree tree_{{}};
  KinetoDoor door_;
  jobs::RunList runs_;
};

/// A client in the host's pid namespace.
Asker host(std::uint32_t uid) { return {30, uid, std::vector<int>{30}}; }

Asked of_run(const std::string& run) {
  Asked asked;
  asked.run = run;
  return asked;
}

Asked of_pid(int pid) {
  Asked asked;
  asked.pid = pid;
  return asked;
}

TEST(Targets, AUserAsksForHisOwnProcesses) {
  Machine machine;
  machine.process(10, kAlice, "10", "/a", "bert");
  machine.process(11, kAlice, "11\t5", "/a", "bert");
  machine.process(20, kBob, "20", "/b", "gpt");
  const auto found = machine.find(of_run("bert"), host(kAlice));
  ASSERT_TRUE(found);
  ASSERT_EQ(found->members.size(), 2U);
  EXPECT_EQ(found->run, (RunName{"alice", "bert"}));
  EXPECT_EQ(found->members[1].pid, 11);
  EXPECT_EQ(found->members[1].inner_pid, 5) << "the file has the number that the process knows";
  EXPECT_FALSE(machine.find(of_run("bert"), host(kBob)));
  EXPECT_FALSE(machine.find(of_pid(10), host(kBob)));
  EXPECT_TRUE(machine.find(of_pid(10), host(kAlice)));
  EXPECT_TRUE(machine.find(of_pid(20), host(0))) << "root asks for all";
  machine.users = {"1001"};
  EXPECT_FALSE(machine.find(of_pid(10), host(kAlice))) << "not admitted";
  EXPECT_TRUE(machine.find(of_pid(20), host(kBob)));
}

TEST(Targets, AProcessOfAnotherUserIsNotPartOfTheRun) {
  Machine machine;
  machine.process(10, kAlice, "10", "/a", "bert");
  machine.process(20, kBob, "20", "/a");  // in the same cgroup
  const auto found = machine.find(of_run("bert"), host(0));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->members.size(), 1U);
}

TEST(Targets, TheLauncherIsNotPartOfTheRun) {
  Machine machine;
  machine.process(10, kAlice, "10", "/a");  // in the cgroup of the run's process
  machine.process(11, kAlice, "11", "/a", "bert");
  const auto found = machine.find(of_run("bert"), host(kAlice));
  ASSERT_TRUE(found);
  ASSERT_EQ(found->members.size(), 1U);
  EXPECT_EQ(found->members.front().pid, 11);
}

TEST(Targets, AConditionProfilesAProcessOnItsGpu) {
  Machine machine;
  machine.process(10, kAlice, "10", "/a", "bert");
  machine.process(11, kAlice, "11", "/a", "bert");
  machine.process(12, kAlice, "12", "/a", "other");
  EXPECT_EQ(machine.first_of("bert", {11, 12}), std::vector<int>{11});
  EXPECT_EQ(machine.first_of("bert", {12}), std::vector<int>{10}) << "none of the run's processes is on it";
  EXPECT_EQ(machine.first_of("bert", {}), std::vector<int>{10});
  EXPECT_EQ(machine.first_of("gpt", {11}), std::vector<int>());
}

TEST(Targets, AConditionAsksNoProcessWhoseTraceNobodyWrites) {
  Machine machine;
  machine.process(10, kAlice, "10", "/a", "bert");
  machine.process(11, kAlice, "11", "/a", "bert");
  const std::vector<PortHolder> servers = {{{10, kAlice}, {}, "/run/a.sock", false},
                                           {{11, kAlice}, {}, "/run/b.sock", true}};
  const SystemClock clock;
  DebugDoor without(clock);
  without.found(servers);
  EXPECT_EQ(machine.first_of(without, "bert", {}), std::vector<int>());
  DebugDoor with_folder(clock, {}, true);
  with_folder.found(servers);
  EXPECT_EQ(machine.first_of(with_folder, "bert", {10}), std::vector<int>{11});
}

TEST(Targets, AContainerAsksOnlyForItsOwnCgroup) {
  const std::string ours = "/system.slice/docker-" + std::string(64, 'a') + ".scope";
  const std::string theirs = "/system.slice/docker-" + std::string(64, 'b') + ".scope";
  Machine machine;
  machine.process(10, kAlice, "10\t7", ours);
  machine.process(20, kAlice, "20\t7", theirs);
  machine.process(30, 0, "30\t9", ours);  // the client
  for (const std::uint32_t uid : {kAlice, 0U}) {
    const auto found = machine.find(of_pid(7), Asker{30, uid, std::vector<int>{30, 9}});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->members.front().pid, 10);
    EXPECT_FALSE(machine.find(of_pid(20), Asker{30, uid, std::vector<int>{30, 9}}));
  }
}

TEST(Targets, AClientThatIsNotIdentifiedGetsNothing) {
  Machine machine;
  machine.process(10, kAlice, "10", "/a", "bert");
  for (const std::uint32_t uid : {kAlice, 0U}) {
    const auto unknown = machine.find(of_pid(10), {30, uid, Error("it has ended")});
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().message(), "it has ended");
    const auto hidden = machine.find(of_pid(10), {30, uid, std::vector<int>{30, 9}});  // no folder in /proc
    ASSERT_FALSE(hidden);
    EXPECT_NE(hidden.error().message().find("cannot read the cgroup"), std::string::npos);
  }
}

TEST(Targets, AProcessWhoseNamespacesAreNotKnownIsInNoContainer) {
  const std::string group = "/system.slice/docker-" + std::string(64, 'a') + ".scope";
  Machine machine;
  machine.process(10, kAlice, "10", group);  // as seen without the right to read it, and on the host
  machine.process(30, 0, "30\t10", group);
  EXPECT_FALSE(machine.find(of_pid(10), {30, kAlice, std::vector<int>{30, 10}}));
}

}  // namespace
}  // namespace gpumeter::profiles
