#include "collectors/jobs/intake/gate.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/fakes/tree.hpp"

namespace gpumeter::jobs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A machine on which process 50 (alice's, started at 100 s) runs, 60 is hidden and 70 has ended.
class GateTest : public testing::Test {
 protected:
  static std::string stat(int pid, int start_ticks) {
    return std::to_string(pid) + " (a) b c) S 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 " +
           std::to_string(start_ticks) + " 1 1\n";
  }
  void run(int pid, int start_ticks, std::string_view uids) const {
    const std::string folder = std::to_string(pid);
    tree_.write(folder + "/stat", stat(pid, start_ticks));
    tree_.write(folder + "/status", "Name:\ta\nUid:\t" + std::string(uids) + "\nGid:\t1\t1\t1\t1\n");
  }
  /// Returns "uid/pid/start user", or the reason of the refusal.
  std::string admitted(Credentials who, Nanoseconds sent, Nanoseconds now) {
    const auto result = gate_.admit(who, sent, now);
    if (const auto* refusal = std::get_if<Refusal>(&result)) return std::string(to_string(*refusal));
    const Guest& guest = std::get<Guest>(result);
    return std::to_string(guest.id.uid) + "/" + std::to_string(guest.id.pid) + "/" +
           std::to_string(guest.id.start_time) + " " + guest.user;
  }
  std::string admitted(Credentials who, Nanoseconds now = seconds(1000)) { return admitted(who, now, now); }

  Tree tree_{{}};
  UserNames names_{[](std::uint32_t uid) -> std::optional<std::string> {
    return uid == 1000 ? std::optional<std::string>("alice") : std::nullopt;
  }};
  ProcessKin kin_{tree_.path()};
  UserOwners owners_{tree_ / "subuid", [](std::string_view name) -> std::optional<std::uint32_t> {
                       return name == "alice" ? std::optional<std::uint32_t>(1000) : std::nullopt;
                     }};
  Gate gate_{tree_.path(), names_, kin_, owners_};
};

TEST_F(GateTest, KnowsAProcessByItsStartTime) {
  run(50, 10'000, "1000\t1000\t1000\t1000");
  EXPECT_EQ(admitted({50, 1000}), "1000/50/10000 alice");
  EXPECT_TRUE(gate_.is_alive({1000, 50, 10'000}));
  EXPECT_FALSE(gate_.is_alive({1000, 50, 9'999}));
  EXPECT_FALSE(gate_.is_alive({1000, 51, 10'000}));
}

TEST_F(GateTest, AcceptsEachOfTheFourUidsAndNoOther) {
  run(50, 10'000, "1\t2\t3\t4");
  for (std::uint32_t uid = 1; uid <= 4; ++uid) {
    EXPECT_EQ(admitted({50, uid}), std::to_string(uid) + "/50/10000 " + std::to_string(uid));
  }
  EXPECT_EQ(admitted({50, 1000}), "identity");
}

TEST_F(GateTest, KnowsTheWorkloadAndTheAncestorsOfAProcess) {
  run(50, 10'000, "1000\t1000\t1000\t1000");
  tree_.write("50/cgroup", "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n");
  tree_.write("60/stat", "60 (worker) S 50 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 20000 1 1\n");
  const auto facts = [&](std::int32_t pid, Nanoseconds now) {
    return std::get<Guest>(gate_.admit({pid, 1000}, now, now)).facts;
  };
  EXPECT_EQ(facts(50, seconds(1000))->workload, (Workload{cgroup::Kind::slurm_job, "4711"}));
  EXPECT_EQ(facts(50, seconds(1000))->began, seconds(100));
  EXPECT_EQ(facts(60, seconds(1000))->ancestors, std::vector<std::int32_t>{50});
  EXPECT_FALSE(facts(60, seconds(1000))->workload.is_known());
  tree_.write("50/cgroup", "0::/system.slice/other.service\n");
  kin_.begin_pass(seconds(1010));
  gate_.tick(seconds(1010));
  EXPECT_EQ(facts(50, seconds(1011))->workload.name, "4711");  // read once
  EXPECT_EQ(facts(70, seconds(1000)), nullptr);
}

TEST_F(GateTest, DoesNotTakeAZombieForAlive) {
  tree_.write("50/stat", "50 (a) Z) Z 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 10000 1 1\n");
  EXPECT_FALSE(gate_.is_alive({1000, 50, 10'000}));
  // Only the first thread has ended.
  tree_.write("50/stat", "50 (a) Z) Z 1 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 2 0 10000 1 1\n");
  EXPECT_TRUE(gate_.is_alive({1000, 50, 10'000}));
}

TEST_F(GateTest, ReadsTheStartTimeOnceASecond) {
  run(50, 10'000, "1000\t1000\t1000\t1000");
  EXPECT_EQ(admitted({50, 1000}, seconds(1000)), "1000/50/10000 alice");
  run(50, 20'000, "1000\t1000\t1000\t1000");
  EXPECT_EQ(admitted({50, 1000}, seconds(1000) + milliseconds(999)), "1000/50/10000 alice");
  EXPECT_EQ(admitted({50, 1000}, seconds(1001)), "1000/50/20000 alice");
}

TEST_F(GateTest, DoesNotTakeAProcessForTheOneThatHadItsNumber) {
  run(50, 10'000, "1000\t1000\t1000\t1000");  // 100 s, at the usual 100 ticks a second
  EXPECT_EQ(admitted({50, 1000}, seconds(99), seconds(1000)), "1000/0/0 alice");
  EXPECT_EQ(admitted({50, 1000}, seconds(100), seconds(1000)), "1000/50/10000 alice");
}

TEST_F(GateTest, TakesWhatAProcessSentBeforeItsEnd) {
  EXPECT_EQ(admitted({2147483600, 1000}), "1000/2147483600/0 alice");  // no process has this number
  run(2147483600, 10'000, "1000\t1000\t1000\t1000");
  EXPECT_EQ(admitted({2147483600, 1000}, seconds(1001)), "1000/2147483600/10000 alice");
  tree_.remove("2147483600");
  EXPECT_EQ(admitted({2147483600, 1000}, seconds(1003)), "1000/2147483600/10000 alice");
  gate_.tick(seconds(1070));
  EXPECT_EQ(admitted({2147483600, 1000}, seconds(1070)), "1000/2147483600/0 alice");
}

TEST_F(GateTest, DoesNotTellProcessesThatItCannotSee) {
  EXPECT_EQ(admitted({0, 1000}), "1000/0/0 alice");
  EXPECT_EQ(admitted({static_cast<std::int32_t>(getpid()), 1000}),
            "1000/0/0 alice");  // exists, but not in the tree
}

TEST_F(GateTest, TakesASubordinateUidForItsOwner) {
  run(50, 10'000, "100999\t100999\t100999\t100999");
  tree_.write("subuid", "alice:100000:65536\n");
  EXPECT_EQ(admitted({50, 100'999}), "100999/50/10000 100999");  // the file is not read yet
  owners_.start();
  owners_.wait(seconds(60));
  EXPECT_EQ(admitted({50, 100'999}), "100999/50/10000 alice");
  EXPECT_EQ(std::get<Guest>(gate_.admit({50, 100'999}, seconds(1000), seconds(1000))).sender().account(),
            1000U);
  gate_.let_in({"alice"});
  EXPECT_EQ(admitted({50, 100'999}), "100999/50/10000 alice");
  gate_.let_in({"100999"});
  EXPECT_EQ(admitted({50, 100'999}), "100999/50/10000 alice");
  gate_.let_in({"bob"});
  EXPECT_EQ(admitted({50, 100'999}), "user");
}

TEST_F(GateTest, LetsInWhomTheConfigNames) {
  run(50, 10'000, "1000\t1001\t1002\t1000");
  gate_.let_in({"alice", "1001"});
  EXPECT_EQ(admitted({50, 1000}), "1000/50/10000 alice");
  EXPECT_EQ(admitted({50, 1001}), "1001/50/10000 1001");
  EXPECT_EQ(admitted({50, 1002}), "user");
  EXPECT_EQ(admitted({0, 0}), "user");
  gate_.let_in({});
  EXPECT_EQ(admitted({50, 1002}), "1002/50/10000 1002");
}

/// Of one moment: 1000 s after the start of the machine.
class AdmissionsTest : public GateTest {
 protected:
  std::string answered(Credentials who, Nanoseconds sent) {
    const auto& answer = admissions_.of(who, sent, seconds(1000));
    if (const auto* refusal = std::get_if<Refusal>(&answer)) return std::string(to_string(*refusal));
    const Guest& guest = std::get<Guest>(answer);
    return std::to_string(guest.id.pid) + " " + guest.user;
  }

  Admissions admissions_{gate_};
};

TEST_F(AdmissionsTest, AsksTheGateOnceForEachSender) {
  run(50, 10'000, "1000\t1000\t1000\t1000");
  run(51, 10'000, "1\t1\t1\t1");
  EXPECT_EQ(answered({50, 1000}, seconds(999)), "50 alice");
  EXPECT_EQ(answered({51, 1}, seconds(999)), "51 1");
  EXPECT_EQ(answered({51, 1000}, seconds(999)), "identity");
  gate_.let_in({"bob"});
  EXPECT_EQ(answered({50, 1000}, seconds(1000)), "50 alice");
  EXPECT_EQ(answered({51, 1}, seconds(1000)), "51 1");
  EXPECT_EQ(answered({51, 1000}, seconds(1000)), "identity");
  admissions_.clear();
  EXPECT_EQ(answered({50, 1000}, seconds(1000)), "user");
}

// Process 50 began at 100 s: an earlier message is of the process that had its number before.
TEST_F(AdmissionsTest, DoNotHoldForAMessageFromBeforeTheProcess) {
  run(50, 10'000, "1000\t1000\t1000\t1000");
  EXPECT_EQ(answered({50, 1000}, seconds(99)), "0 alice");
  EXPECT_EQ(answered({50, 1000}, seconds(101)), "50 alice");
  EXPECT_EQ(answered({50, 1000}, seconds(99)), "0 alice");
  EXPECT_EQ(answered({50, 1000}, seconds(98)), "0 alice");
}

using std::chrono::hours;

/// The test process is the sender, and was started earlier.
const Nanoseconds kStart = SystemClock().boottime();

class ConnectionsTest : public testing::Test {
 protected:
  /// Returns the job's end and the daemon's end.
  static std::pair<Descriptor, Descriptor> pair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    return {Descriptor(ends[0]), Descriptor(ends[1])};
  }
  /// Returns the job's end of a new connection; number_ is the daemon's.
  Descriptor connected(Nanoseconds now = kStart) {
    auto [job, daemon] = pair();
    const auto added = connections_.add(std::move(daemon), now);
    number_ = std::get<int>(added);
    return std::move(job);
  }
  /// Returns the payloads that arrive, each followed by a bar, then the number of overlong ones.
  std::string heard(const Descriptor& job, std::string_view bytes, Nanoseconds now = kStart) {
    std::string text;
    std::uint64_t overlong = 0;
    const auto take = [&](const Sender& sender, std::string_view payload) {
      EXPECT_EQ(sender.id.pid, getpid());
      EXPECT_EQ(sender.id.uid, geteuid());
      user_ = sender.user;
      text.append(payload).append("|");
    };
    do {
      const std::string_view part = bytes.substr(0, 1000);
      EXPECT_EQ(send(job.number(), part.data(), part.size(), MSG_NOSIGNAL), std::ssize(part));
      bytes.remove_prefix(part.size());
      overlong += connections_.read(number_, now, take);
    } while (!bytes.empty());
    overlong += connections_.read(number_, now, take);  // the rest, for which the full buffer had no room
    return text + std::to_string(overlong);
  }

  std::atomic<bool> answers_ = true;  ///< the directory of users, whose only user has the name "someone"
  UserNames names_{[this](std::uint32_t) -> std::optional<std::string> {
    while (!answers_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return "someone";
  }};
  std::string user_;  ///< of the last message
  ProcessKin kin_{"/proc"};
  UserOwners owners_{"/nonexistent"};
  Gate gate_{"/proc", names_, kin_, owners_};
  Connections connections_{gate_};
  int number_ = -1;
};

TEST_F(ConnectionsTest, HaveTheNameOfTheirUserOnceItIsKnown) {
  answers_ = false;
  const Descriptor job = connected();
  EXPECT_EQ(heard(job, "ml.steps:1|c\n"), "ml.steps:1|c|0");
  EXPECT_EQ(user_, std::to_string(geteuid()));
  answers_ = true;
  while (names_.of(geteuid()) != "someone") std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(heard(job, "ml.steps:1|c\n"), "ml.steps:1|c|0");
  EXPECT_EQ(user_, "someone");
}

TEST_F(ConnectionsTest, CutPlainLines) {
  const Descriptor job = connected();
  EXPECT_EQ(heard(job, "ml.steps:1|c\nml.st"), "ml.steps:1|c|0");
  EXPECT_EQ(heard(job, "ep:2|g\n"), "ml.step:2|g|0");
}

TEST_F(ConnectionsTest, CutFrames) {
  const Descriptor job = connected();
  EXPECT_EQ(heard(job, std::string_view("\x03\0\0\0a\nb\x05\0", 9)), "a\nb|0");
  EXPECT_EQ(heard(job, std::string_view("\0\0cc", 4)), "0");
  EXPECT_EQ(heard(job, "ccc"), "ccccc|0");
}

TEST_F(ConnectionsTest, CloseAtAFrameThatIsTooLong) {
  const Descriptor job = connected();
  EXPECT_EQ(heard(job, std::string_view("\x01\0\x01\0", 4)), "1");
  EXPECT_EQ(connections_.size(), 0U);
  char byte = 0;
  EXPECT_EQ(recv(job.number(), &byte, 1, 0), 0);
}

TEST_F(ConnectionsTest, LoseALineThatIsTooLong) {
  const Descriptor job = connected();
  EXPECT_EQ(heard(job, "abcd\n" + std::string(kMaxPayload + 100, 'x') + "\ne\n"), "abcd|e|1");
}

TEST_F(ConnectionsTest, DoNotTakeATornEnd) {
  {
    const Descriptor job = connected();
    EXPECT_EQ(heard(job, "whole\ntor"), "whole|0");
  }
  EXPECT_EQ(connections_.read(number_, kStart, {}), 0U);
  EXPECT_EQ(connections_.size(), 0U);
  EXPECT_EQ(connections_.read(number_, kStart, {}), 0U);
}

TEST_F(ConnectionsTest, AreBoundedForEachUser) {
  std::vector<Descriptor> jobs;
  for (std::size_t i = 0; i < Connections::kMostOfUser; ++i) jobs.push_back(connected());
  auto [job, daemon] = pair();
  const auto added = connections_.add(std::move(daemon), kStart);
  EXPECT_EQ(std::get<Refusal>(added), Refusal::connections);
  char byte = 0;
  EXPECT_EQ(recv(job.number(), &byte, 1, 0), 0);
  EXPECT_EQ(connections_.size(), Connections::kMostOfUser);
}

TEST_F(ConnectionsTest, CloseAfterLongSilence) {
  const Descriptor silent = connected();
  const Descriptor talks = connected();
  EXPECT_EQ(heard(talks, "a\n", kStart + hours(4)), "0");  // four bytes distinguish lines from frames
  connections_.tick(kStart + Connections::kIdle);
  EXPECT_EQ(connections_.size(), 1U);
  EXPECT_EQ(heard(talks, "b\n", kStart + hours(7)), "a|b|0");
}

TEST_F(ConnectionsTest, AreRefusedToUsersThatAreNotLetIn) {
  gate_.let_in({"nobody else"});
  auto [job, daemon] = pair();
  EXPECT_EQ(std::get<Refusal>(connections_.add(std::move(daemon), kStart)), Refusal::user);
}

}  // namespace

}  // namespace gpumeter::jobs
