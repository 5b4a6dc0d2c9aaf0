#include "exporter/http/standstill.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace gpumeter {
namespace {

constexpr auto kPatience = std::chrono::seconds(20);
constexpr auto kNone = std::chrono::milliseconds(0);

TEST(Standstill, HoldsThreadsUntilItsEnd) {
  Standstill standstill;
  std::atomic<int> gone = 0;
  const auto thread = [&] {
    standstill.hold();
    ++gone;
  };
  standstill.begin();
  EXPECT_FALSE(standstill.holds(1, kNone));
  std::thread first(thread);
  std::thread second(thread);
  EXPECT_TRUE(standstill.holds(2, kPatience));
  EXPECT_FALSE(standstill.holds(3, kNone));
  EXPECT_EQ(gone, 0);
  standstill.end();
  first.join();
  second.join();
  EXPECT_EQ(gone, 2);
  EXPECT_FALSE(standstill.holds(1, kNone));
}

TEST(Standstill, HoldsNobodyWhoComesLate) {
  Standstill standstill;
  standstill.hold();
  standstill.begin();
  standstill.end();
  standstill.hold();
}

TEST(Standstill, IsAskedByItsOwnAddressOnly) {
  constexpr sockaddr kUnnamed{.sa_family = AF_UNIX, .sa_data = {1}};
  constexpr sockaddr kNoFamily{.sa_family = AF_UNSPEC, .sa_data = {}};
  EXPECT_TRUE(Standstill::is_asked_by(&Standstill::kAddress));
  EXPECT_FALSE(Standstill::is_asked_by(&kUnnamed));
  EXPECT_FALSE(Standstill::is_asked_by(&kNoFamily));
  EXPECT_FALSE(Standstill::is_asked_by(nullptr));
}

}  // namespace
}  // namespace gpumeter
