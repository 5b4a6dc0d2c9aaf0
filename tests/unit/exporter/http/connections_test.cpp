#include "exporter/http/connections.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <thread>

#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Both ends of a connection; the book has one of them.
class Pair {
 public:
  explicit Pair(HttpConnections& book, Peer peer = {}) : book_(book) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0);
    entry_ = book.opened(ends_[0], std::move(peer));
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() {
    book_.closed(entry_);
    close(ends_[0]);
    close(ends_[1]);
  }

  HttpConnection* operator->() { return entry_; }
  const HttpConnection* entry() const { return entry_; }
  int client() const { return ends_[1]; }
  bool is_ended() const {
    char byte = 0;
    return recv(ends_[1], &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
  }

 private:
  HttpConnections& book_;
  int ends_[2] = {};
  HttpConnection* entry_;
};

struct HttpConnectionsTest : testing::Test {
  bool ends_after(Pair& pair, Nanoseconds time) {
    clock.advance(time - milliseconds(1));
    book.look();
    const bool too_early = pair.is_ended();
    clock.advance(milliseconds(1));
    book.look();
    return !too_early && pair.is_ended();
  }

  FakeClock clock;
  HttpConnections book{clock, {.of_one_worker = 3, .most_of_one_worker = 5, .of_one_peer = 2, .bytes = 100}};
};

const Peer kA{.key = "a", .is_remote = true};
const Peer kB{.key = "b", .is_remote = true};
const Peer kUser{.key = "1000"};
const Peer kOther{.key = "1001"};

TEST_F(HttpConnectionsTest, EndsAConnectionWithoutARequestIn10Seconds) {
  Pair silent(book);
  EXPECT_TRUE(ends_after(silent, seconds(10)));
}

TEST_F(HttpConnectionsTest, EndsAConnectionThatTricklesAsIfItWereSilent) {
  Pair slow(book);
  for (int i = 0; i < 9; ++i) {
    clock.advance(seconds(1));
    EXPECT_EQ(send(slow.client(), "x", 1, 0), 1);
    book.look();
  }
  EXPECT_TRUE(ends_after(slow, seconds(1)));
}

TEST_F(HttpConnectionsTest, KeepsAConnectionForTheNextRequestFor30Seconds) {
  Pair kept(book);
  kept->asked();
  kept->answered();
  EXPECT_TRUE(ends_after(kept, seconds(30)));
}

TEST_F(HttpConnectionsTest, EndsAnAnswerThatIsNotTakenIn60Seconds) {
  Pair slow(book);
  clock.advance(seconds(9));
  slow->asked();
  EXPECT_TRUE(ends_after(slow, seconds(60)));
}

TEST_F(HttpConnectionsTest, EndsConnectionsWithoutARequestBeforeIdleOnesAndNoAnswers) {
  Pair answering(book), idle(book);
  answering->asked();
  idle->asked();
  idle->answered();
  clock.advance(milliseconds(1));
  Pair silent(book);
  clock.advance(milliseconds(250));
  Pair fourth(book);
  EXPECT_TRUE(silent.is_ended());
  Pair fifth(book);
  EXPECT_TRUE(idle.is_ended());
  Pair sixth(book);
  EXPECT_FALSE(answering.is_ended());
  EXPECT_FALSE(fourth.is_ended());
  EXPECT_FALSE(fifth.is_ended());
}

TEST_F(HttpConnectionsTest, GivesANewConnectionTimeForItsRequestUpToTheHighestLimit) {
  Pair first(book), second(book), third(book);
  clock.advance(milliseconds(249));
  Pair fourth(book), fifth(book);
  EXPECT_FALSE(first.is_ended());
  Pair sixth(book);
  EXPECT_TRUE(first.is_ended());
  EXPECT_FALSE(second.is_ended());
  clock.advance(milliseconds(1));
  Pair seventh(book);
  EXPECT_TRUE(second.is_ended());
  EXPECT_TRUE(third.is_ended());
  EXPECT_FALSE(fourth.is_ended());
  EXPECT_FALSE(fifth.is_ended());
}

TEST_F(HttpConnectionsTest, EndsConnectionsOfThePeerThatHasTheMost) {
  Pair one(book, kOther);
  clock.advance(milliseconds(1));
  Pair two(book, kUser), three(book, kUser);
  clock.advance(milliseconds(250));
  Pair four(book, kUser);
  EXPECT_FALSE(one.is_ended());
  EXPECT_TRUE(two.is_ended());
  EXPECT_FALSE(three.is_ended());
}

TEST_F(HttpConnectionsTest, EndsAClientThatLeftAfterItsAnswerBeforeOthers) {
  Pair oldest(book);
  clock.advance(seconds(1));
  Pair left(book);
  left->asked();
  left->sends(nullptr, 0, seconds(10));
  left->answered();
  shutdown(left.client(), SHUT_WR);
  Pair half_closed(book);  // its request may not have been read yet
  shutdown(half_closed.client(), SHUT_WR);
  const Pair fourth(book);
  EXPECT_TRUE(left.is_ended());
  EXPECT_FALSE(oldest.is_ended());
  EXPECT_FALSE(half_closed.is_ended());
  const Pair fifth(book);
  EXPECT_TRUE(oldest.is_ended());
  EXPECT_FALSE(half_closed.is_ended());
}

TEST_F(HttpConnectionsTest, EndsNoRequestWhosePasswordIsCheckedBelowTheHighestLimit) {
  std::vector<void*> released;
  HttpConnections with_passwords(clock, {.of_one_worker = 2, .most_of_one_worker = 3},
                                 [&](void* request) { released.push_back(request); });
  Pair waits(with_passwords), sends(with_passwords);
  int request = 0;
  waits->asked();
  waits->paused(&request);
  sends->asked();
  sends->sends(nullptr, 0, seconds(10));
  clock.advance(seconds(1));
  const Pair third(with_passwords);
  EXPECT_FALSE(waits.is_ended());
  const Pair fourth(with_passwords);
  EXPECT_FALSE(waits.is_ended()) << "the third never sent a request";
  EXPECT_TRUE(third.is_ended());
  EXPECT_THAT(released, testing::IsEmpty());
  waits->asked();
  EXPECT_EQ(with_passwords.make_room_for_answers(2), 2U) << "a resumed request counts once";
}

TEST_F(HttpConnectionsTest, EndsTheLongestAnswerForOneTooManyIfItTakesLong) {
  Pair idle(book), first(book), second(book);
  for (Pair* each : {&first, &second}) {
    (*each)->asked();
    (*each)->sends(nullptr, 0, seconds(10));
    clock.advance(milliseconds(1));
  }
  EXPECT_EQ(book.make_room_for_answers(2), 2U);
  clock.advance(milliseconds(97));
  EXPECT_EQ(book.make_room_for_answers(1), 2U);
  EXPECT_FALSE(first.is_ended());
  clock.advance(milliseconds(1));
  EXPECT_EQ(book.make_room_for_answers(1), 1U);
  EXPECT_TRUE(first.is_ended());
  EXPECT_FALSE(second.is_ended());
  EXPECT_FALSE(idle.is_ended());
}

TEST_F(HttpConnectionsTest, MeasuresAnAnswerFromTheStartOfItsSending) {
  Pair rendered(book);
  rendered->asked();
  clock.advance(milliseconds(100));
  EXPECT_EQ(book.make_room_for_answers(0), 1U);
  rendered->sends(nullptr, 0, seconds(10));
  EXPECT_EQ(book.make_room_for_answers(0), 1U);
  EXPECT_FALSE(rendered.is_ended());
}

TEST_F(HttpConnectionsTest, EndsAnAnswerOfThePeerWithTheMostAnswers) {
  Pair one(book, kOther), two(book, kUser), three(book, kUser);
  for (Pair* each : {&one, &two, &three}) {
    (*each)->asked();
    (*each)->sends(nullptr, 0, seconds(10));
  }
  clock.advance(milliseconds(100));
  EXPECT_EQ(book.make_room_for_answers(2), 2U);
  EXPECT_FALSE(one.is_ended());
  EXPECT_TRUE(two.is_ended() || three.is_ended());
}

TEST_F(HttpConnectionsTest, EndsAYoungAnswerForAPeerWithLessThanHalfAsMany) {
  Pair one(book, kUser), two(book, kUser), three(book, kUser), asker(book, kOther);
  for (Pair* each : {&one, &two, &three}) {
    (*each)->asked();
    (*each)->sends(nullptr, 0, seconds(10));
    clock.advance(milliseconds(1));
  }
  asker->asked();
  EXPECT_EQ(book.make_room_for_answers(3, asker.entry()), 3U);
  EXPECT_TRUE(one.is_ended());
  EXPECT_FALSE(asker.is_ended());
  EXPECT_EQ(book.make_room_for_answers(2, two.entry()), 3U) << "its peer has the most itself";
}

TEST_F(HttpConnectionsTest, EndsTheOldestAnswersWhilePagesHoldTooManyBytes) {
  const char pages[4] = {};
  Pair first(book), shares(book), second(book), third(book);
  int page = 0;
  for (Pair* each : {&first, &shares, &second, &third}) {
    (*each)->asked();
    (*each)->sends(&pages[page / 2], 40, seconds(10));
    clock.advance(milliseconds(1));
    page += each == &second ? 2 : 1;
  }
  EXPECT_TRUE(book.may_hold_too_much());
  EXPECT_EQ(book.make_room_for_answers(9), 10U) << "more than 100 bytes, and no answer takes long";
  clock.advance(milliseconds(100));
  EXPECT_EQ(book.make_room_for_answers(9), 2U) << "a page is kept as long as one client reads it";
  EXPECT_TRUE(first.is_ended());
  EXPECT_TRUE(shares.is_ended());
  EXPECT_FALSE(second.is_ended());
  EXPECT_TRUE(book.may_hold_too_much()) << "an ended answer counts until the library has closed it";
  for (Pair* each : {&first, &shares}) (*each)->answered();
  EXPECT_FALSE(book.may_hold_too_much());
}

TEST_F(HttpConnectionsTest, EndsAStreamWhoseMessageIsNotTakenIn60Seconds) {
  Pair stream(book);
  stream->asked();
  int request = 0;
  stream->streams(&request, nullptr, 0);
  clock.advance(std::chrono::hours(1));
  book.look();
  EXPECT_FALSE(stream.is_ended()) << "there was nothing to send";
  stream->streams(nullptr, &request, 10);
  clock.advance(seconds(59));
  stream->streams(nullptr, &request, 10);  // the next message
  EXPECT_TRUE(ends_after(stream, seconds(60)));
}

TEST_F(HttpConnectionsTest, StreamsHoldBytesButAreNoAnswersUnderWay) {
  const char pictures[3] = {};
  Pair first(book), second(book), third(book);
  for (Pair* each : {&first, &second, &third}) {
    (*each)->asked();
    (*each)->streams(nullptr, &pictures[0], 60);
    clock.advance(milliseconds(100));
  }
  EXPECT_TRUE(book.may_hold_too_much());
  EXPECT_EQ(book.make_room_for_answers(0), 0U) << "the bytes are shared";
  second->streams(nullptr, &pictures[1], 60);
  third->streams(nullptr, &pictures[2], 60);
  EXPECT_EQ(book.make_room_for_answers(0), 0U) << "three pictures are too many";
  EXPECT_TRUE(first.is_ended());
  EXPECT_FALSE(second.is_ended() || third.is_ended());
  second->streams(&book, nullptr, 0);
  for (Pair* each : {&first, &third}) (*each)->answered();
  EXPECT_FALSE(book.may_hold_too_much());
  Pair answer(book);
  answer->asked();
  answer->sends(&pictures[0], 101, seconds(10));
  EXPECT_TRUE(book.may_hold_too_much()) << "nothing is left of the streams' bytes";
  second->answered();
  EXPECT_EQ(book.make_room_for_answers(1), 1U);
}

TEST_F(HttpConnectionsTest, AllowsTwoPagesOfAnySize) {
  const char pages[3] = {};
  Pair first(book), second(book), third(book);
  first->asked();
  first->sends(&pages[0], 1000, seconds(10));
  second->asked();
  second->sends(&pages[1], 1000, seconds(10));
  clock.advance(milliseconds(100));
  EXPECT_EQ(book.make_room_for_answers(9), 2U);
  third->asked();
  third->sends(&pages[2], 1000, seconds(10));
  EXPECT_EQ(book.make_room_for_answers(9), 2U);
  EXPECT_TRUE(first.is_ended());
}

TEST_F(HttpConnectionsTest, EndsAnAnswerWhenItsClientGivesUp) {
  Pair impatient(book), patient(book);
  for (Pair* each : {&impatient, &patient}) (*each)->asked();
  clock.advance(seconds(1));
  impatient->sends(nullptr, 0, seconds(10));
  patient->sends(nullptr, 0, seconds(3600));
  EXPECT_TRUE(ends_after(impatient, seconds(9)));
  EXPECT_TRUE(ends_after(patient, seconds(50)));
}

TEST_F(HttpConnectionsTest, CountsEachWorkerAlone) {
  Pair here(book), there(book), everywhere(book);
  clock.advance(seconds(1));
  std::thread([&] {
    const Pair other(book);
    EXPECT_FALSE(other.is_ended());
  }).join();
  EXPECT_FALSE(here.is_ended());
}

TEST_F(HttpConnectionsTest, EndsTheOldestOfARemotePeerForANewOneOfTheSame) {
  Pair first(book, kA), other(book, kB), second(book, kA);
  std::thread([&] {
    const Pair third(book, kA);
    EXPECT_TRUE(first.is_ended());
    EXPECT_FALSE(second.is_ended());
    EXPECT_FALSE(third.is_ended());
  }).join();
  EXPECT_FALSE(other.is_ended());
}

/// So many descriptors are left to the process, until the end of the block.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t left) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const int next = dup(0);
    close(next);
    const rlimit few{static_cast<rlim_t>(next) + left, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

constexpr HttpLimits kTwoFree{.free_descriptors = 2};

TEST_F(HttpConnectionsTest, LeavesDescriptorsToTheRestOfTheDaemon) {
  HttpConnections few(clock, kTwoFree);
  const FewDescriptors limit(6);  // two for each pair
  Pair many(few, kUser), more(few, kUser);
  EXPECT_FALSE(few.lacks_descriptors());
  EXPECT_FALSE(many.is_ended());
  clock.advance(milliseconds(300));
  const Pair last(few, kOther);
  EXPECT_TRUE(many.is_ended());
  EXPECT_FALSE(more.is_ended());
  EXPECT_FALSE(last.is_ended());
  EXPECT_TRUE(few.lacks_descriptors());
  clock.advance(seconds(60));
  EXPECT_FALSE(few.lacks_descriptors());
}

TEST_F(HttpConnectionsTest, EndsAnIdleConnectionIfNoneCanBeAccepted) {
  Pair asks(book), fresh(book);
  asks->asked();
  book.accept_failed();
  EXPECT_FALSE(fresh.is_ended()) << "its request may come";
  clock.advance(milliseconds(300));
  book.look();
  EXPECT_TRUE(fresh.is_ended()) << "the accept failed since";
  EXPECT_FALSE(asks.is_ended());
  const Pair idle(book);
  clock.advance(milliseconds(300));
  book.look();
  EXPECT_FALSE(idle.is_ended()) << "no accept failed since";
}

TEST_F(HttpConnectionsTest, GivesUpItsSpareDescriptorAndTakesAnother) {
  book.look();
  const FewDescriptors limit(0);
  EXPECT_EQ(dup(0), -1);
  book.accept_failed();
  const int freed = dup(0);
  EXPECT_NE(freed, -1);
  close(freed);
  book.look();
  EXPECT_EQ(dup(0), -1) << "the book has the spare one again";
}

TEST_F(HttpConnectionsTest, EndsAnIdleConnectionWhoseClientHasClosedItsHalf) {
  Pair left(book), asks(book);
  asks->asked();
  shutdown(left.client(), SHUT_WR);
  shutdown(asks.client(), SHUT_WR);
  book.look();
  EXPECT_FALSE(left.is_ended()) << "its request may have come just now";
  book.look();
  EXPECT_TRUE(left.is_ended());
  EXPECT_FALSE(asks.is_ended()) << "it waits for the answer";
  asks->answered();
  book.look();
  book.look();
  EXPECT_TRUE(asks.is_ended());
}

// The attack: each process of a user namespace has another uid. The oldest connection is that of another
// user.
TEST_F(HttpConnectionsTest, TheUidsOfAUserNamespaceTakeNoPlaceOfAnotherUser) {
  Tree tree{{"subuid", "1000:100000:65536\n"}};
  UserOwners owners(tree / "subuid");
  owners.start();
  owners.wait(std::chrono::minutes(1));
  const auto keep = [](Pair& pair) {
    pair->asked();
    pair->answered();
  };
  Pair user(book, Peer::of_uid(1001, &owners));
  keep(user);
  std::deque<Pair> attackers;
  for (std::uint32_t i = 0; i < 20; ++i) {
    clock.advance(seconds(1));
    keep(attackers.emplace_back(book, Peer::of_uid(100'000 + i, &owners)));
  }
  EXPECT_FALSE(user.is_ended());
  EXPECT_TRUE(attackers.front().is_ended());
}

}  // namespace
}  // namespace gpumeter
