#include "collectors/jobs/intake/receiver.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/requirements.hpp"

namespace gpumeter::jobs {
namespace {

using std::chrono::milliseconds;

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
