#include "collectors/attribution/names/known_users.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "base/clock.hpp"

namespace gpumeter::jobs {
namespace {

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
