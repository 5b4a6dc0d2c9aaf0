#include "exporter/access/logins.hpp"

#include <crypt.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <thread>

namespace gpumeter {
namespace {

using Verdict = Logins::Verdict;

/// A request that counts how often it is paused and resumed.
struct Request {
  std::atomic<int> paused = 0;
  std::atomic<int> resumed = 0;
};
constexpr Pausing kPausing = {[](void* request) noexcept { ++static_cast<Request*>(request)->paused; },
                              [](void* request) noexcept { ++static_cast<Request*>(request)->resumed; }};

std::string hashed(const char* password, const char* cost = "04") {
  crypt_data data{};
  return crypt_r(password, ("$2y$" + std::string(cost) + "$abcdefghijklmnopqrstuu").c_str(), &data);
}

class LoginsTest : public testing::Test {
 protected:
  Verdict check(const std::string& user, const std::string& password, Request& request,
                const std::string& peer = "10.0.0.1") {
    return logins_.check(users_, {user, password}, {&request, peer}, kPausing);
  }
  void wait_for(const Request& request) {
    while (request.resumed == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  /// The verdict of a request that may wait.
  Verdict verdict(const std::string& user, const std::string& password) {
    Request request;
    const Verdict first = check(user, password, request);
    if (first != Verdict::waits) return first;
    wait_for(request);
    EXPECT_EQ(request.paused, 1);
    return check(user, password, request);
  }
  /// As verdict(), for a result that must be known.
  Verdict known(const std::string& user, const std::string& password) {
    Request request;
    return check(user, password, request);
  }

  const SystemClock clock_;
  std::map<std::string, std::string> users_ = {{"alice", hashed("alice123")}, {"dave", hashed("dave123")}};
  Logins logins_{clock_};
};

TEST_F(LoginsTest, ChecksEachPairOnce) {
  ASSERT_TRUE(logins_.start());
  EXPECT_EQ(verdict("dave", "dave123"), Verdict::good);
  EXPECT_EQ(verdict("dave", "alice123"), Verdict::bad);
  EXPECT_EQ(verdict("nobody", "dave123"), Verdict::bad);
  EXPECT_EQ(known("dave", "dave123"), Verdict::good);
  EXPECT_EQ(known("dave", "alice123"), Verdict::bad);
  EXPECT_EQ(known("nobody", "dave123"), Verdict::bad);
}

// exporter-toolkit's dummy hash has a password that everybody knows.
TEST_F(LoginsTest, TheDummyHashLetsNobodyIn) {
  ASSERT_TRUE(logins_.start());
  EXPECT_EQ(verdict("fakeuser", "fakepassword"), Verdict::bad);
  EXPECT_EQ(known("fakeuser", "fakepassword"), Verdict::bad);
}

TEST_F(LoginsTest, EqualRequestsShareOneCheck) {
  std::array<Request, 100> requests;
  for (Request& request : requests) EXPECT_EQ(check("dave", "dave123", request), Verdict::waits);
  Request other;
  EXPECT_EQ(check("alice", "alice123", other), Verdict::waits);
  ASSERT_TRUE(logins_.start());
  wait_for(other);
  for (Request& request : requests) {
    wait_for(request);
    EXPECT_EQ(check("dave", "dave123", request), Verdict::good);
    EXPECT_EQ(request.resumed, 1);
  }
  EXPECT_EQ(check("alice", "alice123", other), Verdict::good);
}

TEST_F(LoginsTest, EightChecksWaitAndNoMore) {
  std::array<Request, Logins::kMostWaiting> guesses;
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    EXPECT_EQ(check("dave", std::to_string(i), guesses[i]), Verdict::waits);
  }
  Request late;
  EXPECT_EQ(check("dave", "dave123", late), Verdict::too_many);
  EXPECT_EQ(late.paused, 0);
  Request same;
  EXPECT_EQ(check("dave", "0", same), Verdict::waits);  // shares a check
  logins_.close();                                      // before the requests end
}

// Users repeat their password; guesses differ.
TEST_F(LoginsTest, CredentialsThatAreRepeatedPrecedeNewOnes) {
  std::array<Request, Logins::kMostWaiting> guesses;
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    EXPECT_EQ(check("dave", std::to_string(i), guesses[i]), Verdict::waits);
  }
  Request dave;
  EXPECT_EQ(check("dave", "dave123", dave), Verdict::too_many);
  EXPECT_EQ(check("dave", "dave123", dave), Verdict::waits);
  EXPECT_EQ(guesses.back().resumed, 1);
  EXPECT_EQ(check("dave", "7", guesses.back()), Verdict::too_many);
  logins_.close();  // before the requests end
}

// The attack, after a restart: a host sends random passwords of a known user without end. A scrape with the
// right password from another host is neither refused nor left waiting.
TEST_F(LoginsTest, GuessesOfOneHostDoNotLockTheUserOut) {
  std::deque<Request> guesses;
  const auto guess = [&] {
    check("dave", std::to_string(guesses.size()), guesses.emplace_back(), "10.0.0.66");
  };
  for (int i = 0; i < 3000; ++i) guess();
  Request dave;
  ASSERT_EQ(check("dave", "dave123", dave), Verdict::waits);
  for (int i = 0; i < 3000; ++i) guess();
  EXPECT_EQ(dave.resumed, 0) << "the guesses displace each other only";
  ASSERT_TRUE(logins_.start());
  while (dave.resumed == 0) guess();
  EXPECT_EQ(check("dave", "dave123", dave), Verdict::good);
  logins_.close();  // before the requests end
}

// A user that has not logged in yet must not be kept out by guesses that are surely wrong.
TEST_F(LoginsTest, APasswordThatMayBeGoodDisplacesASurelyBadOne) {
  std::array<Request, Logins::kMostWaiting> guesses;
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    EXPECT_EQ(check("nobody" + std::to_string(i), "x", guesses[i]), Verdict::waits);
  }
  Request dave;
  EXPECT_EQ(check("dave", "dave123", dave), Verdict::waits);
  EXPECT_EQ(guesses.back().resumed, 1);
  EXPECT_EQ(check("nobody7", "x", guesses.back()), Verdict::too_many);
  for (std::size_t i = 0; i + 1 < guesses.size(); ++i) EXPECT_EQ(guesses[i].resumed, 0);
  logins_.close();  // before the requests end
}

TEST_F(LoginsTest, KnownUsersDoNotWait) {
  ASSERT_TRUE(logins_.start());
  EXPECT_EQ(verdict("dave", "dave123"), Verdict::good);
  users_["slow"] = hashed("slow", "10");
  std::array<Request, 12> guesses;
  for (std::size_t i = 0; i < guesses.size(); ++i) check("slow", std::to_string(i), guesses[i]);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(known("dave", "dave123"), Verdict::good);
  logins_.close();
}

TEST_F(LoginsTest, ReleaseEndsTheWaitOfOneRequest) {
  Request gone;
  Request stays;
  EXPECT_EQ(check("dave", "dave123", gone), Verdict::waits);
  EXPECT_EQ(check("dave", "dave123", stays), Verdict::waits);
  logins_.release(&gone);
  logins_.release(&gone);  // no effect: it does not wait
  EXPECT_EQ(gone.resumed, 1);
  EXPECT_EQ(stays.resumed, 0);
  EXPECT_EQ(check("dave", "dave123", gone), Verdict::too_many);
  EXPECT_EQ(check("dave", "dave123", gone), Verdict::waits);  // its verdict was used up
  logins_.release(&gone);
  logins_.forget(&gone);  // a new request may have the same address
  EXPECT_EQ(check("dave", "dave123", gone), Verdict::waits);
  logins_.close();  // before the requests end
}

TEST_F(LoginsTest, CloseResumesAll) {
  std::array<Request, 3> requests;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(check("dave", std::to_string(i), requests[i]), Verdict::waits);
  }
  logins_.close();
  for (Request& request : requests) EXPECT_EQ(request.resumed, 1);
  EXPECT_EQ(check("dave", "0", requests[0]), Verdict::too_many);
  Request late;
  EXPECT_EQ(check("dave", "late", late), Verdict::too_many);
  EXPECT_EQ(late.paused, 0);
}

TEST_F(LoginsTest, AChangedHashIsCheckedAgain) {
  ASSERT_TRUE(logins_.start());
  EXPECT_EQ(verdict("dave", "dave123"), Verdict::good);
  users_["dave"] = hashed("new");
  logins_.retain(users_);
  EXPECT_EQ(verdict("dave", "dave123"), Verdict::bad);
  EXPECT_EQ(verdict("dave", "new"), Verdict::good);
  users_.erase("dave");
  EXPECT_EQ(verdict("dave", "new"), Verdict::bad);
}

TEST_F(LoginsTest, ManyThreadsGetTheRightVerdicts) {
  ASSERT_TRUE(logins_.start());
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 30; ++i) {
    threads.emplace_back([this, &wrong, i] {
      const bool is_good = i % 2 == 0;
      for (int turn = 0; turn < 5; ++turn) {
        const Verdict found = verdict("alice", is_good ? "alice123" : "alice1234");
        if (found != (is_good ? Verdict::good : Verdict::bad)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace gpumeter
