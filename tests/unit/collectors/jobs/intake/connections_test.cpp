#include "collectors/jobs/intake/connections.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace gpumeter::jobs {
namespace {

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
