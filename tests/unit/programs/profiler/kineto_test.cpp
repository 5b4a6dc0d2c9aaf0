#include "programs/profiler/kineto.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "tests/fakes/requirements.hpp"

namespace gpumeter::profiles {
namespace {

std::string header(std::uint64_t size, std::string_view type) {
  std::string bytes(kineto::kHeaderBytes, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  type.copy(bytes.data() + sizeof size, type.size());
  return bytes;
}

std::string request(std::int32_t type, std::int32_t count, std::size_t numbers) {
  std::string payload(16 + 4 * numbers, '\0');
  std::memcpy(payload.data(), &type, sizeof type);
  std::memcpy(payload.data() + 4, &count, sizeof count);
  return header(payload.size(), "req") + payload;
}

TEST(KinetoWire, ReadsWhatKinetoSends) {
  // The datagrams of a process 1707 with SLURM_JOB_ID=4242.
  const auto context = kineto::parse(header(16, "ctxt") + std::string(16, '\1'));
  ASSERT_TRUE(context);
  EXPECT_EQ(context->kind, kineto::Message::Kind::context);
  for (const auto& [type, is_free] : {std::pair{2, true}, {3, true}, {0, false}, {1, false}}) {
    const auto message = kineto::parse(request(type, 3, 3));
    ASSERT_TRUE(message) << type;
    EXPECT_EQ(message->kind, kineto::Message::Kind::request);
    EXPECT_EQ(message->is_free, is_free) << type;
  }
}

TEST(KinetoWire, RejectsSizesThatDoNotAgree) {
  const std::string good = request(2, 1, 1);
  EXPECT_TRUE(kineto::parse(good));
  for (std::size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(kineto::parse(good.substr(0, size)));
  EXPECT_FALSE(kineto::parse(good + "x"));
  EXPECT_FALSE(kineto::parse(request(2, 2, 1)));
  EXPECT_FALSE(kineto::parse(request(2, -1, 1)));
  EXPECT_FALSE(kineto::parse(request(2, 0, 0)));
  EXPECT_FALSE(kineto::parse(header(std::uint64_t{1} << 63U, "req") + std::string(20, '\0')));
  EXPECT_FALSE(kineto::parse(header(15, "ctxt") + std::string(15, '\0')));
  EXPECT_FALSE(kineto::parse(header(20, "requ") + std::string(20, '\0')));
}

TEST(KinetoWire, AnswersHaveTheirTrueSize) {
  EXPECT_EQ(kineto::answer(""), header(0, "req"));
  EXPECT_EQ(kineto::answer("A=1\n"), header(4, "req") + "A=1\n");
  EXPECT_EQ(kineto::answer_context(3), header(4, "ctxt") + std::string("\3\0\0\0", 4));
}

TEST(KinetoWire, WritesAnOrder) {
  EXPECT_EQ(
      kineto::text_of({"/tmp/x.json", {std::nullopt, std::chrono::milliseconds(1500)}},
                      std::chrono::seconds(1700000000)),
      "ACTIVITIES_LOG_FILE=/tmp/x.json\nACTIVITIES_WARMUP_PERIOD_SECS=1\nPROFILE_START_TIME=1700000004000\n"
      "ACTIVITIES_DURATION_MSECS=1500\n");
  EXPECT_EQ(kineto::text_of({"/tmp/x.json", {3, std::chrono::seconds(5)}}, Nanoseconds(0)),
            "ACTIVITIES_LOG_FILE=/tmp/x.json\nACTIVITIES_WARMUP_PERIOD_SECS=1\nPROFILE_START_ITERATION=0\n"
            "PROFILE_START_ITERATION_ROUNDUP=1\nACTIVITIES_ITERATIONS=3\nACTIVITIES_DURATION_MSECS=5000\n");
  EXPECT_EQ(kineto::file_of("/tmp/x.json", 12), "/tmp/x_12.json");
}

TEST(KinetoWire, RejectsPathsThatKinetoCannotRead) {
  EXPECT_TRUE(kineto::check_path("/tmp/traces/x.json"));
  for (const char* path : {"", "tmp/x", "/tmp/a=b", "/tmp/#x", "/tmp/../etc/x", "/tmp/a b", "/tmp/a\nB=1"}) {
    EXPECT_FALSE(kineto::check_path(path)) << path;
  }
  EXPECT_FALSE(kineto::check_path("/" + std::string(400, 'x')));
}

using std::chrono::seconds;

constexpr kineto::Message kFree{kineto::Message::Kind::request, true};
constexpr kineto::Message kBusy{kineto::Message::Kind::request, false};
const Peer kPeer{10, 1000, "a"};
const Order kOrder{"/tmp/x.json", {std::nullopt, seconds(5)}};

TEST(KinetoDoor, GivesAnOrderOnceAndSeesItsEnd) {
  KinetoDoor door;
  EXPECT_FALSE(door.ask(10, kOrder, seconds(0))) << "the process is not known";
  EXPECT_EQ(door.hear(kPeer, kFree, seconds(0), seconds(100)), "");
  EXPECT_TRUE(door.ask(10, kOrder, seconds(1)));
  EXPECT_FALSE(door.ask(10, kOrder, seconds(1))) << "it has an order";
  EXPECT_EQ(door.hear(kPeer, kBusy, seconds(2), seconds(100)), "") << "somebody else's trace";
  EXPECT_EQ(door.progress(10).stage, Stage::asked);
  EXPECT_EQ(door.hear(kPeer, kFree, seconds(5), seconds(100)), kineto::text_of(kOrder, seconds(100)));
  EXPECT_EQ(door.progress(10).stage, Stage::taken);
  EXPECT_EQ(door.hear(kPeer, kBusy, seconds(10), seconds(100)), "");
  EXPECT_EQ(door.progress(10).stage, Stage::taken);
  EXPECT_EQ(door.hear(kPeer, kFree, seconds(15), seconds(100)), "");
  EXPECT_EQ(door.progress(10).stage, Stage::done);
  door.release(10);
  EXPECT_EQ(door.progress(10).stage, Stage::none);
  EXPECT_EQ(door.hear(kPeer, kFree, seconds(20), seconds(100)), "");
}

TEST(KinetoDoor, AnOrderThatCouldNotBeSentIsGivenAgain) {
  KinetoDoor door;
  door.hear(kPeer, kFree, seconds(0), seconds(100));
  ASSERT_TRUE(door.ask(10, kOrder, seconds(0)));
  EXPECT_NE(door.hear(kPeer, kFree, seconds(1), seconds(100)), "");
  door.unsent(10);
  EXPECT_NE(door.hear(kPeer, kFree, seconds(2), seconds(100)), "");
}

TEST(KinetoDoor, AProcessThatNeverTurnsBusyRejectedTheOrder) {
  KinetoDoor door;
  door.hear(kPeer, kFree, seconds(0), seconds(100));
  ASSERT_TRUE(door.ask(10, {"/tmp/x.json", {std::nullopt, seconds(60)}}, seconds(0)));
  door.hear(kPeer, kFree, seconds(5), seconds(100));
  door.hear(kPeer, kFree, seconds(10), seconds(100));
  EXPECT_EQ(door.progress(10).stage, Stage::taken) << "the poll may have crossed the order";
  door.hear(kPeer, kFree, seconds(15), seconds(100));
  EXPECT_EQ(door.progress(10).stage, Stage::failed);
}

TEST(KinetoDoor, PollsMayBeTooRareToSeeATrace) {
  for (const Extent& extent : {Extent{std::nullopt, seconds(1)}, Extent{3, seconds(5)}}) {
    KinetoDoor door;
    door.hear(kPeer, kFree, seconds(0), seconds(100));
    ASSERT_TRUE(door.ask(10, {"/tmp/x.json", extent}, seconds(0)));
    door.hear(kPeer, kFree, seconds(5), seconds(100));
    door.hear(kPeer, kFree, seconds(12), seconds(100));
    EXPECT_EQ(door.progress(10).stage, Stage::done);
  }
}

TEST(KinetoDoor, AShortTraceThatShouldHaveBeenSeenWasRejected) {
  KinetoDoor door;
  door.hear(kPeer, kFree, seconds(0), seconds(100));
  ASSERT_TRUE(door.ask(10, {"/tmp/x.json", {std::nullopt, seconds(1)}}, seconds(0)));
  for (const int at : {5, 10, 15}) door.hear(kPeer, kFree, seconds(at), seconds(100));
  EXPECT_EQ(door.progress(10).stage, Stage::failed);
}

TEST(KinetoDoor, ForgetsSilentProcessesAndFailsTheirOrders) {
  KinetoDoor door;
  door.hear(kPeer, kFree, seconds(0), seconds(100));
  ASSERT_TRUE(door.ask(10, kOrder, seconds(0)));
  door.tick(seconds(59));
  EXPECT_EQ(door.size(), 1U);
  door.tick(seconds(60));
  EXPECT_EQ(door.size(), 0U);
  EXPECT_EQ(door.progress(10).stage, Stage::failed);
  door.release(10);
  EXPECT_EQ(door.progress(10).stage, Stage::none);
}

TEST(KinetoDoor, AnOrderIsForTheProcessThatWasThere) {
  KinetoDoor door;
  door.hear(kPeer, kFree, seconds(0), seconds(100));
  ASSERT_TRUE(door.ask(10, kOrder, seconds(0)));
  EXPECT_EQ(door.hear({10, 1001, "a"}, kFree, seconds(1), seconds(100)), "") << "another user";
  EXPECT_EQ(door.progress(10).stage, Stage::failed);
  door.release(10);
  ASSERT_TRUE(door.ask(10, kOrder, seconds(2)));
  EXPECT_EQ(door.hear({10, 1001, "b"}, kFree, seconds(3), seconds(100)), "") << "another program";
  EXPECT_EQ(door.progress(10).stage, Stage::failed);
}

TEST(KinetoDoor, OneUserCannotKeepOthersOut) {
  KinetoDoor door;
  for (int user = 0; user < 8; ++user) {
    for (int i = 0; i < 1100; ++i) {
      const int pid = user * 10'000 + i + 1;
      door.hear({pid, static_cast<std::uint32_t>(user), "a"}, kFree, seconds(i), seconds(100));
    }
  }
  EXPECT_EQ(door.size(), KinetoDoor::kMost);
  door.hear({99'999, 77, "a"}, kFree, seconds(2000), seconds(100));
  EXPECT_EQ(door.size(), KinetoDoor::kMost);
  EXPECT_TRUE(door.ask(99'999, kOrder, seconds(2000)));
}

class KinetoSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = no_socket_timestamps(); !why.empty()) GTEST_SKIP() << why;
    char name[] = "/tmp/gpumeter-kineto-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    auto opened = KinetoSocket::open_in(folder_ + "/sockets");
    ASSERT_TRUE(opened) << opened.error().message();
    daemon_ = *std::move(opened);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
  }
  /// A socket with a name in the folder, as Kineto's.
  Descriptor client(const std::string& name) const {
    Descriptor made(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const sockaddr_un own = address_of(folder_ + "/sockets/" + name);
    EXPECT_EQ(bind(made.number(), reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    return made;
  }
  /// With a descriptor attached, if `attached` is one.
  bool say(const Descriptor& from, int attached = -1) const {
    sockaddr_un to = address_of(folder_ + "/sockets/dynolog");
    char text[] = "hello";
    iovec part{text, sizeof text};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof attached)] = {};
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = sizeof to;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (attached >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* const head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof attached);
      std::memcpy(CMSG_DATA(head), &attached, sizeof attached);
    }
    return sendmsg(from.number(), &message, 0) > 0;
  }
  /// The senders that were answered.
  std::vector<int> served() const {
    std::vector<int> pids;
    daemon_->serve(
        [&](const Peer& peer, std::string_view) {
          pids.push_back(peer.pid);
          return std::string("order");
        },
        [](const Peer&) { ADD_FAILURE() << "the answer is not sent"; });
    return pids;
  }
  static bool is_answered(const Descriptor& client) {
    char text[16];
    return recv(client.number(), text, sizeof text, 0) > 0;
  }
  static auto descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  }

  std::string folder_;
  std::optional<KinetoSocket> daemon_;
};

TEST_F(KinetoSocketTest, AnswersAProcessThatLives) {
  const Descriptor alive = client("alive");
  ASSERT_TRUE(say(alive));
  EXPECT_EQ(served(), std::vector<int>{getpid()});
  EXPECT_TRUE(is_answered(alive));
}

// Its number may be another process's by now, and the socket another process's too.
TEST_F(KinetoSocketTest, ASenderThatHasEndedIsNobody) {
  if (const std::string why = no_pidfds_of_senders(); !why.empty()) GTEST_SKIP() << why;
  const Descriptor inherited = client("inherited");
  const pid_t child = fork();
  if (child == 0) _exit(say(inherited) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(served(), std::vector<int>());
  EXPECT_FALSE(is_answered(inherited));
}

TEST_F(KinetoSocketTest, KeepsNoDescriptor) {
  const Descriptor alive = client("alive");
  const auto before = descriptors();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(say(alive, STDIN_FILENO));
    ASSERT_TRUE(say(alive));
  }
  EXPECT_GE(served().size(), 3U) << "those without a descriptor";
  EXPECT_EQ(descriptors(), before);
}

}  // namespace
}  // namespace gpumeter::profiles
