#include "collectors/jobs/intake/receiver.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "collectors/jobs/wire/line.hpp"
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

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nanoseconds kStart = seconds(1000);

TEST(Allowance, IsTwiceTheRateAndOfEachUser) {
  Allowance allowance(100, kStart);
  int taken = 0;
  for (int i = 0; i < 1000; ++i) taken += allowance.refuse(1, "ml.steps:1|c", kStart) == 0 ? 1 : 0;
  EXPECT_EQ(taken, 200);
  EXPECT_EQ(allowance.refuse(1, "a\nb\nc\n", kStart), 3U);
  EXPECT_EQ(allowance.refuse(1, "a\nb\nc", kStart), 3U);
  EXPECT_EQ(allowance.refuse(2, "a\nb\nc\n", kStart), 0U);
  EXPECT_EQ(allowance.refuse(1, "a", kStart + milliseconds(10)), 0U);
}

TEST(Allowance, IsPaidBackAfterALongDatagram) {
  Allowance allowance(100, kStart);
  std::string lines;
  for (int i = 0; i < 500; ++i) lines += "a\n";
  EXPECT_EQ(allowance.refuse(1, lines, kStart), 0U);
  EXPECT_EQ(allowance.refuse(1, "a", kStart + milliseconds(1500)), 1U);
  EXPECT_EQ(allowance.refuse(1, "a", kStart + milliseconds(1510)), 0U);
}

TEST(Allowance, RemembersABoundedNumberOfUsers) {
  Allowance allowance(100, kStart);
  for (std::uint32_t user = 0; user < 10'000; ++user) {
    for (int i = 0; i < 2; ++i) static_cast<void>(allowance.refuse(user, "a", kStart));
  }
  EXPECT_EQ(allowance.users(), Allowance::kMostUsers);
  EXPECT_EQ(allowance.refuse(9999, "a", kStart), 1U);  // the rest shares one
  EXPECT_EQ(allowance.refuse(0, "a", kStart), 0U);
  allowance.tick(kStart);
  EXPECT_EQ(allowance.users(), Allowance::kMostUsers);
  allowance.tick(kStart + seconds(1));
  EXPECT_EQ(allowance.users(), 0U);
}

TEST(Allowance, TakesOnAnotherRate) {
  Allowance allowance(100, kStart);
  EXPECT_EQ(allowance.refuse(1, "a", kStart), 0U);
  allowance.set_rate(1);
  EXPECT_EQ(allowance.refuse(1, "a\na\n", kStart), 0U);
  EXPECT_EQ(allowance.refuse(1, "a", kStart), 1U);
}

/// The real thread with a real socket.
class ReceiverTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = no_socket_timestamps(); !reason.empty()) GTEST_SKIP() << reason;
    int ends[2] = {-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    job_ = Descriptor(ends[0]);
    daemon_ = Descriptor(ends[1]);
    constexpr int kOn = 1;
    ASSERT_EQ(setsockopt(daemon_.number(), SOL_SOCKET, SO_PASSCRED, &kOn, sizeof kOn), 0);
    ASSERT_EQ(setsockopt(daemon_.number(), SOL_SOCKET, SO_TIMESTAMPNS, &kOn, sizeof kOn), 0);
  }
  void send_text(const std::string& text) const {
    ASSERT_EQ(send(job_.number(), text.data(), text.size(), 0), std::ssize(text));
  }
  /// Takes everything that was sent before the call.
  void take_all() {
    const std::uint64_t question = receiver_.ask();
    while (!receiver_.is_answered(question, milliseconds(1))) take();
    take();
  }
  void take() {
    Letters letters;
    receiver_.take(letters);
    over_rate_ += letters.over_rate();
    letters.for_each([&](const Datagram& datagram) {
      EXPECT_EQ(datagram.from, (Credentials{getpid(), getuid()}));
      ++count_;
      text_.append(datagram.payload.substr(0, 20)).append(datagram.cut ? "|cut " : "| ");
    });
  }

  const SystemClock clock_;
  Descriptor job_, daemon_;
  UserOwners owners_{"/nonexistent"};
  std::atomic<int> woken_ = 0;
  Receiver receiver_{clock_, owners_, 1000, [this] { ++woken_; }};
  std::string text_;
  std::uint64_t count_ = 0;
  std::uint64_t over_rate_ = 0;
};

TEST_F(ReceiverTest, DeliversInOrder) {
  owners_.start();
  ASSERT_TRUE(receiver_.start(daemon_.number()));
  send_text("a");
  send_text("");
  send_text("bb");
  take_all();
  EXPECT_EQ(text_, "a| | bb| ");
  EXPECT_GE(woken_, 1);
}

TEST_F(ReceiverTest, AnswersForEverythingThatWasSentBefore) {
  owners_.start();
  ASSERT_TRUE(receiver_.start(daemon_.number()));
  for (std::uint64_t i = 1; i <= 100; ++i) {
    send_text("a");
    take_all();
    ASSERT_EQ(count_, i);
  }
}

// None is lost: what is rejected is counted.
TEST_F(ReceiverTest, RejectsAFloodAndCountsItsLines) {
  owners_.start();
  ASSERT_TRUE(receiver_.start(daemon_.number()));
  for (int i = 0; i < 20'000; ++i) send_text("ml.steps:1|c\nml.steps:1|c\n");
  take_all();
  EXPECT_EQ(2 * count_ + over_rate_, 40'000U);
  EXPECT_GT(over_rate_, 0U);
}

// The thread lets messages gather and hands them over in parts, in any case in the order of their arrival.
TEST_F(ReceiverTest, DeliversABusyStreamInOrder) {
  receiver_.set_rate(1e9);
  owners_.start();
  ASSERT_TRUE(receiver_.start(daemon_.number()));
  constexpr int kMessages = 20'000;
  std::string expected;
  for (int i = 0; i < kMessages; ++i) expected += std::to_string(i) + "| ";
  std::thread sender([&] {
    for (int i = 0; i < kMessages; ++i) send_text(std::to_string(i));
  });
  while (count_ < kMessages) take_all();
  sender.join();
  EXPECT_EQ(text_, expected);
}

TEST_F(ReceiverTest, WaitsForRoomAndLosesNothing) {
  receiver_.set_rate(1e9);
  owners_.start();
  ASSERT_TRUE(receiver_.start(daemon_.number()));
  const std::string large(32'000, 'x');
  std::thread sender([&] {
    for (int i = 0; i < 300; ++i) send_text(large);  // 9.6 MB, more than Inbox::kRoom
  });
  while (count_ < 300) take_all();
  sender.join();
  EXPECT_EQ(count_, 300U);
}

TEST_F(ReceiverTest, StopsWhileItWaitsForRoom) {
  receiver_.set_rate(1e9);
  owners_.start();
  ASSERT_TRUE(receiver_.start(daemon_.number()));
  const std::string large(32'000, 'x');
  for (std::size_t sent = 0; sent < Inbox::kRoom + 1; sent += large.size()) send_text(large);
  receiver_.stop();
  take();
  EXPECT_GT(count_, 0U);
}

Letters letters_of(const std::vector<Datagram>& datagrams) {
  Letters letters;
  for (const Datagram& datagram : datagrams) letters.add(datagram);
  return letters;
}

std::string text_of(const Letters& letters) {
  std::string text;
  letters.for_each([&](const Datagram& datagram) {
    text += std::to_string(datagram.from.pid) + std::string(datagram.payload) + (datagram.cut ? "cut " : " ");
  });
  return text;
}

TEST(Inbox, KeepsTheOrderAndForgetsCutPayloads) {
  Inbox inbox;
  Letters first = letters_of({{"a", {1, 2}, {}, false}, {"long", {3, 4}, {}, true}});
  Letters second = letters_of({{"c", {1, 2}, {}, false}});
  second.add_over_rate(7);
  EXPECT_TRUE(inbox.put(first));
  EXPECT_FALSE(inbox.put(second));
  EXPECT_TRUE(first.empty());
  EXPECT_TRUE(second.empty());
  Letters letters;
  inbox.take(letters);
  EXPECT_EQ(text_of(letters), "1a 3cut 1c ");
  EXPECT_EQ(letters.over_rate(), 7U);
  letters.clear();
  EXPECT_TRUE(letters.empty());
  first = letters_of({{"d", {1, 2}, {}, false}});
  EXPECT_TRUE(inbox.put(first));
}

// Lines over the rate wait for the next message or tick, but they do not hide that a message is the first.
TEST(Inbox, WakesForMessagesOnly) {
  Inbox inbox;
  Letters rejected;
  rejected.add_over_rate(3);
  EXPECT_FALSE(inbox.put(rejected));
  rejected.add_over_rate(4);
  EXPECT_FALSE(inbox.put(rejected));
  Letters message = letters_of({{"a", {1, 2}, {}, false}});
  EXPECT_TRUE(inbox.put(message));
  Letters letters;
  inbox.take(letters);
  EXPECT_EQ(text_of(letters), "1a ");
  EXPECT_EQ(letters.over_rate(), 7U);
}

}  // namespace

}  // namespace gpumeter::jobs
