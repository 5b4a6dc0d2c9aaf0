#include "collectors/jobs/intake/allowance.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gpumeter::jobs {
namespace {

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

}  // namespace
}  // namespace gpumeter::jobs
