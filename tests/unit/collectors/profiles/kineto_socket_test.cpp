#include "collectors/profiles/kineto_socket.hpp"

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
