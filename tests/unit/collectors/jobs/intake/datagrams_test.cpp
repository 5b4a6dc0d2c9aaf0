#include "collectors/jobs/intake/datagrams.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/descriptor.hpp"
#include "collectors/jobs/wire/payload.hpp"
#include "tests/fakes/requirements.hpp"

namespace gpumeter::jobs {
namespace {

class DatagramsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = no_socket_timestamps(); !reason.empty()) GTEST_SKIP() << reason;
    int ends[2] = {-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends), 0);
    job_ = Descriptor(ends[0]);
    daemon_ = Descriptor(ends[1]);
    constexpr int kOn = 1;
    constexpr int kLargest = 1 << 18;
    setsockopt(job_.number(), SOL_SOCKET, SO_SNDBUF, &kLargest, sizeof kLargest);
    ASSERT_EQ(setsockopt(daemon_.number(), SOL_SOCKET, SO_PASSCRED, &kOn, sizeof kOn), 0);
    ASSERT_EQ(setsockopt(daemon_.number(), SOL_SOCKET, SO_TIMESTAMPNS, &kOn, sizeof kOn), 0);
  }
  void send_text(const std::string& text) const {
    ASSERT_EQ(send(job_.number(), text.data(), text.size(), 0), std::ssize(text));
  }
  std::string read() {
    std::string text;
    datagrams_.read(daemon_.number(), [&](const Datagram& datagram) {
      last_ = datagram;
      text.append(datagram.payload.substr(0, 10)).append(datagram.cut ? "|cut " : "| ");
    });
    return text;
  }

  Descriptor job_, daemon_;
  Datagrams datagrams_;
  Datagram last_;
};

TEST_F(DatagramsTest, AreReadInOrderWithTheirSender) {
  const SystemClock clock;
  EXPECT_EQ(read(), "");
  const Nanoseconds before = clock.realtime();
  send_text("a");
  send_text("");
  send_text("bb");
  EXPECT_EQ(read(), "a| | bb| ");
  EXPECT_EQ(last_.from, (Credentials{getpid(), getuid()}));
  EXPECT_GE(last_.sent + std::chrono::milliseconds(1), before);
  EXPECT_LE(last_.sent, clock.realtime());
}

TEST_F(DatagramsTest, SayThatTheyWereLongerThanTheBuffer) {
  send_text(std::string(kMaxPayload, 'a'));
  EXPECT_EQ(read(), "aaaaaaaaaa| ");
  EXPECT_EQ(last_.payload.size(), kMaxPayload);
  send_text(std::string(kMaxPayload + 1, 'b'));
  EXPECT_EQ(read(), "bbbbbbbbbb|cut ");
}

TEST_F(DatagramsTest, LeaveNoDescriptorThatAClientSendsAlong) {
  std::string text = "x";
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  const int sent = job_.number();
  std::memcpy(CMSG_DATA(rights), &sent, sizeof sent);
  const int free_before = dup(0);
  close(free_before);
  ASSERT_EQ(sendmsg(job_.number(), &message, 0), 1);
  EXPECT_EQ(read(), "x| ");
  EXPECT_EQ(last_.from, (Credentials{getpid(), getuid()}));
  EXPECT_EQ(fcntl(free_before, F_GETFD), -1);  // the lowest free number is still free
}

}  // namespace
}  // namespace gpumeter::jobs
