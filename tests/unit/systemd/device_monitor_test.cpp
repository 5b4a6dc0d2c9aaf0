#include "systemd/device_monitor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

namespace gpumeter::systemd {
namespace {

// tests/e2e/hot_plug_test.py tests the events with udev's own messages.
TEST(DeviceMonitor, IsSilentWhereNothingComesOrGoes) {
  constexpr const char* kNoSuchSubsystem[] = {"gpumeter-test"};
  auto opened = DeviceMonitor::open(kNoSuchSubsystem);
  if (!opened) GTEST_SKIP() << opened.error().message();
  DeviceMonitor monitor = *std::move(opened);
  EXPECT_FALSE(monitor.take());
  pollfd ready{monitor.descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  EXPECT_NE(fcntl(monitor.descriptor(), F_GETFD) & FD_CLOEXEC, 0);
}

}  // namespace
}  // namespace gpumeter::systemd
