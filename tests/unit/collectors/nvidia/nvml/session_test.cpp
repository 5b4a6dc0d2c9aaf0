#include "collectors/nvidia/nvml/session.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "collectors/nvidia/nvml/abi.hpp"
#include "collectors/nvidia/nvml/constants.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/fake_driver.hpp"
#include "tests/fakes/nvidia_gpu.hpp"

namespace gpumeter::nvidia {
namespace {

struct Meaning {
  unsigned result;
  Blame blame;
  ReadStatus status;
};

constexpr Meaning kMeanings[] = {
    {nvml::kSuccess, Blame::nobody, ReadStatus::ok},
    {nvml::kNotSupported, Blame::call, ReadStatus::unsupported},
    {nvml::kFunctionNotFound, Blame::call, ReadStatus::unsupported},
    {nvml::kArgumentVersionMismatch, Blame::call, ReadStatus::unsupported},
    {nvml::kDeprecated, Blame::call, ReadStatus::unsupported},
    {nvml::kInvalidArgument, Blame::call, ReadStatus::unsupported},
    {nvml::kNoPermission, Blame::call, ReadStatus::denied},
    {nvml::kTimeout, Blame::call, ReadStatus::timeout},
    {nvml::kNotFound, Blame::call, ReadStatus::failed},
    {nvml::kNoData, Blame::call, ReadStatus::failed},
    {nvml::kNotReady, Blame::call, ReadStatus::failed},
    {nvml::kUnknown, Blame::call, ReadStatus::failed},
    {31337, Blame::call, ReadStatus::failed},
    {nvml::kGpuIsLost, Blame::device, ReadStatus::gone},
    {nvml::kResetRequired, Blame::device, ReadStatus::gone},
    {nvml::kGpuNotFound, Blame::device, ReadStatus::gone},
    {nvml::kUninitialized, Blame::library, ReadStatus::gone},
    {nvml::kDriverNotLoaded, Blame::library, ReadStatus::gone},
    {nvml::kLibRmVersionMismatch, Blame::library, ReadStatus::gone},
};

TEST(NvmlReturn, SaysWhoIsToBlameAndHowTheReadEnded) {
  for (const Meaning& meaning : kMeanings) {
    EXPECT_EQ(blame_of(meaning.result), meaning.blame) << meaning.result;
    EXPECT_EQ(status_of(meaning.result), meaning.status) << meaning.result;
  }
}

TEST(NvmlReturn, OnlyWhatWillNeverComeIsLacking) {
  for (const Meaning& meaning : kMeanings) {
    const bool never = meaning.status == ReadStatus::unsupported || meaning.status == ReadStatus::denied;
    EXPECT_EQ(is_lacking(meaning.status), never) << meaning.result;
  }
}

TEST(NvmlReturn, ReasonsSayWhatWouldHelp) {
  EXPECT_EQ(reason_of(nvml::kDriverNotLoaded), "the kernel module is not loaded: modprobe nvidia");
  EXPECT_EQ(reason_of(nvml::kLibRmVersionMismatch),
            "reboot needed: the driver's library and its kernel module have different versions, as after an "
            "upgrade; unloading and loading the module also works");
  EXPECT_EQ(reason_of(nvml::kGpuIsLost),
            "a GPU has fallen off the bus: reset it (nvidia-smi --gpu-reset) or reboot");
  EXPECT_EQ(reason_of(nvml::kUnknown), "NVML error 999");
}

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

TEST(ThrottleFields, HadOtherIdsInTwoBranches) {
  for (const char* driver : {"575.51.03", "575.64.05", "580.65.06"}) {
    EXPECT_EQ(throttle_field(269, driver), 251U) << driver;
    EXPECT_EQ(throttle_field(271, driver), 253U) << driver;
    EXPECT_EQ(throttle_field(74, driver), 74U) << driver;
  }
  EXPECT_EQ(throttle_field(269, "580.76.05"), 0U);
  EXPECT_EQ(throttle_field(74, "580.76.05"), 74U);
  for (const char* driver : {"", "570.124.06", "580.82.07", "580.95.05", "595.71.05"})
    EXPECT_EQ(throttle_field(270, driver), 270U) << driver;
}

constexpr const char* kScenario = R"(
devices:
  - uuid: GPU-0
    clocks: {reasons: [], supported_reasons: [sw_thermal]}
    fields:
      251: {value: {rate: 500 ms}, type: ulonglong}
      269: 3
system: {driver_version: )";

constexpr const char* kSeries = "gpu_throttle_reason_seconds_total{cause=\"thermal\",reason=\"sw_thermal\"} ";

TEST(ThrottleFields, TheCounterOfADriverOfThatTimeIsRead) {
  FakeDriver driver(std::string(kScenario) + "575.57.08}\n");
  NvidiaGpu gpu(driver);
  gpu.attach().run(0, 10);
  EXPECT_EQ(gpu.lines({"gpu_throttle_reason_seconds"}), std::string(kSeries) + "5\n");
}

/// The bytes that a library with entries of this length writes into room for ten.
template <class Entry>
std::vector<std::byte> written(const std::vector<Entry>& entries) {
  std::vector<std::byte> room(10 * sizeof(nvml::WideProcessInfo), kUntouched);
  std::memcpy(room.data(), entries.data(), entries.size() * sizeof(Entry));
  return room;
}

constexpr unsigned kNone = nvml::kNoInstance;

TEST(ProcessStride, ShortEntries) {
  const auto list = written<nvml::ProcessInfo>({{1, 4096, kNone, kNone}, {2, 4096, 1, 0}, {3, 8, 7, 1}});
  for (const std::size_t count : {0U, 1U, 2U, 3U}) EXPECT_EQ(stride_of(list, count), 24U) << count;
}

TEST(ProcessStride, LongEntries) {
  const auto list = written<nvml::WideProcessInfo>({{1, 4096, kNone, kNone, 0},
                                                    {2, 4096, kNone, kNone, nvml::kValueNotAvailable},
                                                    {3, 8, 7, 1, 0},
                                                    {4, 0, 1, 0, 0}});
  for (const std::size_t count : {2U, 3U, 4U}) EXPECT_EQ(stride_of(list, count), 32U) << count;
}

// A single entry has the same content with either length.
TEST(ProcessStride, OneLongEntryIsReadAsAShortOne) {
  EXPECT_EQ(stride_of(written<nvml::WideProcessInfo>({{1, 4096, kNone, kNone, 0}}), 1), 24U);
}

// A pid of 0 is a process of another pid namespace, and no reason to doubt a list with the right end.
TEST(ProcessStride, WhereTheListEndsCountsForMoreThanWhatIsInIt) {
  EXPECT_EQ(stride_of(written<nvml::ProcessInfo>({{0, 1, kNone, kNone}, {0, 1, kNone, kNone}}), 2), 24U);
}

TEST(ProcessStride, WhatMakesSenseNeitherWayIsNoList) {
  EXPECT_EQ(stride_of(std::vector<std::byte>(320, std::byte{0xFF}), 4), 0U);
}

TEST(ProcessStride, OnlyTheBranchesOfTheLongerHeaderMayBeWide) {
  EXPECT_FALSE(may_be_wide("530.41.03"));
  EXPECT_TRUE(may_be_wide("535.54.03"));
  EXPECT_TRUE(may_be_wide("545.23.06"));
  EXPECT_FALSE(may_be_wide("550.54.14"));
  EXPECT_FALSE(may_be_wide(""));
}

}  // namespace
}  // namespace gpumeter::nvidia
