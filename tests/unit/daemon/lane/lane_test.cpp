#include "daemon/lane/lane.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "tests/fakes/fake_clock.hpp"

namespace gpumeter {
namespace {

using namespace std::chrono_literals;

TEST(DriverGate, ADeadlineIsCountedFromTheEntry) {
  FakeClock clock;
  DriverGate gate(1, clock);
  auto first = gate.enter(3s);
  EXPECT_EQ(first->deadline(), 3s);
  std::unique_ptr<DriverGate::Place> second;
  std::thread waiting([&] { second = gate.enter(3s); });
  clock.advance(2500ms);
  first.reset();
  waiting.join();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->deadline(), 5500ms);
}

TEST(DriverGate, IsStuckWhileAllItsPlacesAreHeldByLateCalls) {
  FakeClock clock;
  DriverGate gate(2, clock);
  auto first = gate.enter(3s);
  clock.advance(3100ms);
  EXPECT_FALSE(gate.is_stuck());  // one place is free
  auto second = gate.enter(3s);
  EXPECT_FALSE(gate.is_stuck());  // the second call is still within its time
  clock.advance(3s);
  EXPECT_FALSE(gate.is_stuck());
  clock.advance(1ms);
  EXPECT_TRUE(gate.is_stuck());
  first.reset();
  EXPECT_FALSE(gate.is_stuck());
}

TEST(DriverGate, WithoutALimitIsNeverStuck) {
  FakeClock clock;
  DriverGate gate(0, clock);
  const auto first = gate.enter(1s);
  const auto second = gate.enter(1s);
  clock.advance(1h);
  EXPECT_FALSE(gate.is_stuck());
}

TEST(DriverGate, TurnsAwayWhoWaitsWhenItCloses) {
  FakeClock clock;
  DriverGate gate(1, clock);
  const auto first = gate.enter(1s);
  std::thread closing([&] { gate.close(); });
  EXPECT_EQ(gate.enter(1s), nullptr);
  closing.join();
}

}  // namespace
}  // namespace gpumeter
