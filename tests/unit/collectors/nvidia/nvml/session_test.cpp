#include "collectors/nvidia/nvml/session.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "collectors/nvidia/nvml/constants.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/fake_driver.hpp"

namespace gpumeter::nvidia {
namespace {

std::string waiting(const FakeDriver& driver) {
  return driver.library() +
         ": the driver was unloaded while calls were running in it; waiting for them to return";
}

std::string trouble_of(const FakeDriver& driver) {
  const auto session = NvmlSession::shared(driver.library());
  return session ? "" : session.error().message();
}

TEST(NvmlSession, IsOneForAllAndEndsWithTheLast) {
  const FakeDriver driver("devices: []");
  auto first = *NvmlSession::shared(driver.library());
  auto second = *NvmlSession::shared(driver.library());
  EXPECT_EQ(first, second);
  EXPECT_EQ(driver.open().inits, 1U);
  first.reset();
  EXPECT_EQ(driver.open().inits, 1U);
  second.reset();
  EXPECT_EQ(driver.open().inits, 0U);
  EXPECT_EQ(trouble_of(driver), "");
}

TEST(NvmlSession, OfAnotherPathIsAnother) {
  const FakeDriver one("devices: []"), other("devices: []");
  const auto first = *NvmlSession::shared(one.library());
  const auto second = *NvmlSession::shared(other.library());
  EXPECT_NE(first, second);
  first->condemn();
  EXPECT_FALSE(second->is_dead());
}

TEST(NvmlSession, ACondemnedOneIsWaitedFor) {
  const FakeDriver driver("devices: []");
  auto session = *NvmlSession::shared(driver.library());
  session->condemn();
  EXPECT_EQ(trouble_of(driver), waiting(driver));
  session.reset();
  EXPECT_EQ(trouble_of(driver), "");
}

// NVML counts its inits. An init before the old session's shutdown would find the dead driver again.
TEST(NvmlSession, ACondemnedOneIsWaitedForUntilItHasShutDown) {
  const FakeDriver driver(R"(
hang: {function: nvmlEventSetFree, after: 5, for: 1000}
devices: [{uuid: GPU-0, supported_events: [xid]}]
)");
  driver.set_time(0);
  auto session = *NvmlSession::shared(driver.library());
  nvml::Device gpu = nullptr;
  ASSERT_EQ(session->functions().nvmlDeviceGetHandleByIndex_v2(0, &gpu), nvml::kSuccess);
  session->listener().listen({gpu, nvml::kEventXid, "GPU-0", std::make_shared<DeviceEvents>()});
  session->listener().wait(Nanoseconds{0}, FakeClock());
  driver.set_time(5);
  session->condemn();
  std::thread last([&session] { session.reset(); });
  while (driver.open().calls_under_way == 0) std::this_thread::yield();
  EXPECT_EQ(trouble_of(driver), waiting(driver));
  driver.set_time(1005);
  last.join();
  EXPECT_EQ(trouble_of(driver), "");
  EXPECT_EQ(driver.violations(), "");
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
}

TEST(NvmlSession, OneThatDoesNotBeginLeavesNothingOpen) {
  const FakeDriver driver("errors: {nvmlInit_v2: {error: driver_not_loaded}}\ndevices: []");
  EXPECT_EQ(trouble_of(driver), driver.library() + ": the kernel module is not loaded: modprobe nvidia");
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
  EXPECT_EQ(driver.calls("nvmlShutdown"), 0U);
}

TEST(NvmlSession, OnlyAMissingFileIsAbsence) {
  EXPECT_TRUE(is_absent(NvmlSession::shared("/nonexistent/libnvidia-ml.so.1").error()));
  const Tree tree({{"libnvidia-ml.so.1", "no library"}});
  EXPECT_FALSE(is_absent(NvmlSession::shared(tree / "libnvidia-ml.so.1").error()));
}

}  // namespace
}  // namespace gpumeter::nvidia
