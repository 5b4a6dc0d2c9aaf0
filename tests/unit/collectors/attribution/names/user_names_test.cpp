#include "collectors/attribution/names/user_names.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include "base/clock.hpp"
#include "tests/fakes/no_threads.hpp"

namespace gpumeter::jobs {
namespace {

TEST(UserNames, AreLookedUpOnceAndElseDigits) {
  const auto lookups = std::make_shared<std::atomic<int>>(0);
  UserNames names([lookups](std::uint32_t uid) -> std::optional<std::string> {
    ++*lookups;
    return uid == 1000 ? std::optional<std::string>("alice") : std::nullopt;
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(names.of(1000), "alice");
    EXPECT_EQ(names.of(4294967294), "4294967294");
  }
  EXPECT_EQ(*lookups, 2);
  EXPECT_FALSE(names.hangs());
}

TEST(UserNames, AreDigitsWhileALookupHangsAndKnownOnceItAnswers) {
  const auto answers = std::make_shared<std::atomic<bool>>(false);
  {
    UserNames names([answers](std::uint32_t uid) -> std::optional<std::string> {
      while (!*answers) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return "name" + std::to_string(uid);
    });
    EXPECT_EQ(names.of(1), "1");
    EXPECT_TRUE(names.hangs());
    // A lookup does not wait if another one hangs. Otherwise 1000 lookups of 200 ms would take minutes and
    // time out.
    for (std::uint32_t uid = 2; uid < 1002; ++uid) EXPECT_EQ(names.of(uid), std::to_string(uid));
    *answers = true;
    while (names.of(1001) != "name1001") std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(names.of(1), "name1");
  }
}

// The attack: a directory that takes 5 ms, and a process that takes another uid for each message.
TEST(UserNames, AThreadOfAllJobsDoesNotWaitForEachOfManyNames) {
  const auto lookups = std::make_shared<std::atomic<int>>(0);
  UserNames names([lookups](std::uint32_t uid) -> std::optional<std::string> {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ++*lookups;
    return uid < 2000 ? std::optional<std::string>("user" + std::to_string(uid)) : std::nullopt;
  });
  EXPECT_EQ(names.soon(1000), "user1000");
  std::uint32_t uid = 100'000;
  for (; uid < 110'000; ++uid) {
    names.soon(uid);
    ASSERT_EQ(names.soon(1000), "user1000") << "a known name stays";
  }
  EXPECT_LT(*lookups, 1000);
  while (names.soon(1001) != "user1001") names.soon(uid++);  // its turn comes
}

TEST(UserNames, CanEndWhileALookupHangs) {
  const auto answers = std::make_shared<std::atomic<bool>>(false);
  {
    UserNames names([answers](std::uint32_t) -> std::optional<std::string> {
      while (!*answers) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return std::nullopt;
    });
    EXPECT_EQ(names.of(7), "7");
  }
  *answers = true;
}

TEST(UserNames, AreNumbersWhileThereIsNoThread) {
  UserNames names([](std::uint32_t) { return std::optional<std::string>("alice"); });
  {
    const NoThreads none;
    EXPECT_EQ(names.of(7), "7");
  }
  EXPECT_EQ(names.of(7), "alice");
}

TEST(UserNames, ComeFromTheSystem) {
  EXPECT_EQ(UserNames::from_system(0), "root");
  EXPECT_EQ(UserNames::from_system(4294967000), std::nullopt);
}

using Status = KnownUsers::Status;

TEST(KnownUsers, TheSystemKnowsRootAndNotEverybody) {
  const SystemClock clock;
  KnownUsers users(clock);
  const auto entries = users.of({"root", "no-user-of-that-name"});
  EXPECT_EQ(entries.at("root").status, Status::known);
  EXPECT_EQ(entries.at("root").uid, 0U);
  EXPECT_EQ(entries.at("no-user-of-that-name").status, Status::unknown);
  EXPECT_FALSE(users.hangs());
}

TEST(KnownUsers, OneLookupThatHangsIsWaitedForOnce) {
  const SystemClock clock;
  const auto free = std::make_shared<std::atomic<bool>>(false);
  const auto asked = std::make_shared<std::atomic<int>>(0);
  KnownUsers users(clock, [free, asked](const std::string&) {
    ++*asked;
    while (!*free) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return KnownUsers::Entry{Status::known, 7};
  });
  EXPECT_EQ(users.of({"a", "b"}).at("b").status, Status::no_answer);
  EXPECT_TRUE(users.hangs());
  EXPECT_EQ(users.of({"c"}).at("c").status, Status::no_answer);
  EXPECT_EQ(*asked, 1);
  *free = true;
  while (users.hangs()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(users.of({"c"}).at("c").uid, 7U);
}

}  // namespace

}  // namespace gpumeter::jobs
