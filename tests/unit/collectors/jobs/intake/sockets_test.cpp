#include "collectors/jobs/intake/sockets.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>

#include "tests/fakes/requirements.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::jobs {
namespace {

/// Permissions in octal, or "none".
std::string mode_of(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return "none";
  char text[8];
  std::snprintf(text, sizeof text, "%04o", status.st_mode & 07777U);
  return text;
}

/// Returns the result of connecting to the socket.
std::string called(const std::string& path, int type) {
  const Descriptor caller(socket(AF_UNIX, type, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int result = connect(caller.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return result == 0 ? "answers" : std::generic_category().message(errno);
}

/// Leaves a bound socket without a listener, as a killed daemon does.
void leave_socket(const std::string& path) {
  Result<BoundSocket> made = BoundSocket::open(path + ".made", SOCK_DGRAM, 0600);
  ASSERT_TRUE(made) << made.error().message();
  std::filesystem::rename(path + ".made", path);
}

class JobSocketsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = no_socket_timestamps(); !reason.empty()) GTEST_SKIP() << reason;
  }
  JobSockets opened(std::vector<PassedSocket> passed = {}) {
    said_.clear();
    return open_sockets(settings_, std::move(passed), [this](const Notice& notice) {
      said_ += std::string(notice.message) + "|" + notice.path.substr(notice.path.rfind('/') + 1) + "|" +
               notice.error.substr(0, notice.error.find(';')) + "\n";
    });
  }

  Tree tree_{{}};
  SocketSettings settings_{tree_ / "d", tree_ / "s", {0620}};
  std::string said_;
};

TEST_F(JobSocketsTest, HaveTheirModeWhateverTheUmaskAndAreGoneWithTheirOwner) {
  for (const mode_t mask : {0000U, 0022U, 0077U}) {
    const mode_t before = umask(mask);
    {
      const JobSockets sockets = opened();
      EXPECT_EQ(said_, "listening for jobs|d|\nlistening for jobs|s|\n");
      EXPECT_EQ(mode_of(tree_ / "d") + " " + mode_of(tree_ / "s"), "0620 0620");
      EXPECT_EQ(called(tree_ / "d", SOCK_DGRAM), "answers");
      EXPECT_EQ(called(tree_ / "s", SOCK_STREAM), "answers");
    }
    EXPECT_EQ(mode_of(tree_ / "d") + " " + mode_of(tree_ / "s"), "none none");
    umask(before);
  }
}

TEST_F(JobSocketsTest, ReplaceOneThatNobodyListensTo) {
  leave_socket(tree_ / "d");
  EXPECT_EQ(called(tree_ / "d", SOCK_DGRAM), "Connection refused");
  const JobSockets sockets = opened();
  EXPECT_EQ(said_, "listening for jobs|d|\nlistening for jobs|s|\n");
  EXPECT_EQ(called(tree_ / "d", SOCK_DGRAM), "answers");
}

TEST_F(JobSocketsTest, AreNotStolenFromAnotherDaemon) {
  const JobSockets first = opened();
  {
    const JobSockets second = opened();
    EXPECT_FALSE(second.datagram || second.stream);
    EXPECT_EQ(said_,
              "cannot listen for jobs here|d|another process listens on this socket\n"
              "cannot listen for jobs here|s|another process listens on this socket\n");
  }
  EXPECT_EQ(called(tree_ / "d", SOCK_DGRAM), "answers");
}

TEST_F(JobSocketsTest, ReplaceNoFileThatIsNoSocket) {
  tree_.write("d", "text");
  tree_.write("s", "-> d");
  const JobSockets sockets = opened();
  EXPECT_EQ(said_,
            "cannot listen for jobs here|d|the path names a file that is not a socket\n"
            "cannot listen for jobs here|s|the path names a file that is not a socket\n");
  EXPECT_EQ(std::filesystem::file_size(tree_ / "d"), 4U);
}

TEST_F(JobSocketsTest, SayWhatIsWrongWithTheFolder) {
  settings_.datagram = tree_ / "nosuch/folder/d";
  settings_.stream = "";
  const JobSockets sockets = opened();
  EXPECT_EQ(said_,
            "cannot listen for jobs here|d|" + (tree_ / "nosuch/folder") + ": No such file or directory\n");
}

TEST_F(JobSocketsTest, MakeTheirFolderOpenToAllWhereItIsMissing) {
  settings_.datagram = tree_ / "gpumeter/d";
  settings_.stream = "";
  const mode_t before = umask(0077);
  const JobSockets sockets = opened();
  umask(before);
  EXPECT_EQ(called(settings_.datagram, SOCK_DGRAM), "answers");
  EXPECT_EQ(mode_of(tree_ / "gpumeter"), "0755");
}

TEST_F(JobSocketsTest, DoNotTakeAwayWhatAnotherPutInTheirPlace) {
  {
    const JobSockets sockets = opened();
    tree_.remove("d");
    tree_.write("d", "text");
  }
  EXPECT_EQ(mode_of(tree_ / "s"), "none");
  EXPECT_NE(mode_of(tree_ / "d"), "none");
}

TEST_F(JobSocketsTest, OfSystemdComeFirstAndKeepTheirFile) {
  Result<BoundSocket> made = BoundSocket::open(tree_ / "passed", SOCK_DGRAM, 0600);
  ASSERT_TRUE(made);
  {
    std::vector<PassedSocket> passed(3);
    passed[0] = {Descriptor(dup(made->number())), "jobs", SOCK_DGRAM};
    passed[1] = {Descriptor(dup(made->number())), "jobs", SOCK_DGRAM};
    passed[2] = {Descriptor(socket(AF_INET, SOCK_DGRAM, 0)), "jobs", 0};
    const JobSockets sockets = opened(std::move(passed));
    EXPECT_TRUE(sockets.datagram);
    EXPECT_FALSE(sockets.stream);
    EXPECT_EQ(
        said_,
        "ignoring a socket of systemd: jobs need one Unix datagram socket and one Unix stream socket|jobs|\n"
        "ignoring a socket of systemd: jobs need one Unix datagram socket and one Unix stream socket|jobs|\n"
        "listening for jobs on the sockets of systemd||\n");
  }
  EXPECT_EQ(mode_of(tree_ / "passed"), "0600");
}

TEST(QueueLength, LeavesRoomWhileOneSenderFillsItsPart) {
  if (const auto reason = no_socket_timestamps(); !reason.empty()) GTEST_SKIP() << reason;
  Tree tree{{}};
  const Result<BoundSocket> made = BoundSocket::open(tree / "d", SOCK_DGRAM, 0600);
  ASSERT_TRUE(made) << made.error().message();
  if (!made->has_long_queue()) GTEST_SKIP() << "needs CAP_SYS_ADMIN and a writable /proc/sys";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (tree / "d").copy(address.sun_path, sizeof address.sun_path - 1);
  for (int sender = 0; sender < 10; ++sender) {
    const Descriptor job(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));
    ASSERT_EQ(connect(job.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    for (int i = 0; i < 100; ++i) ASSERT_EQ(send(job.number(), "a", 1, 0), 1) << sender << ' ' << i;
    while (send(job.number(), "a", 1, 0) == 1) continue;  // its own send buffer is full
  }
}

TEST(QueueLength, IsSaidWhereItIsShort) {
  std::string said;
  const Say say = [&](const Notice& notice) { said += notice.error; };
  const Tree tree{{"sys/net/unix/max_dgram_qlen", "64\n"}};
  check_queue_length(tree.path(), say);
  EXPECT_EQ(said, "");
  tree.write("sys/net/unix/max_dgram_qlen", "10\n");
  check_queue_length(tree.path(), say);
  EXPECT_EQ(said, "net.unix.max_dgram_qlen is 10");
}

}  // namespace
}  // namespace gpumeter::jobs
