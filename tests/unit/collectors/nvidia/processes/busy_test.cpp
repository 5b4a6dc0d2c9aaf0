#include "collectors/nvidia/processes/busy.hpp"

#include <gtest/gtest.h>

#include "tests/unit/collectors/nvidia/listed_gpu.hpp"

// Busy time of each process. The fake's samples are 200 ms apart, and it remembers 72 of them.

namespace gpumeter::nvidia {
namespace {

std::string scenario(const std::string& processes, const std::string& samples = "period_ms: 200") {
  return "devices: [{uuid: GPU-0, processes: {samples: {" + samples + "}, " + processes + "}}]";
}

TEST(ProcessBusy, CountsFromTheFirstQuestionOn) {
  FakeDriver driver(scenario("compute: [{pid: 1, sm: 40}, {pid: 2, sm: 25}, {pid: 3}]"));
  ListedGpu gpu(driver);
  EXPECT_EQ(gpu.asked(100, 0), "1: -, 0 s\n2: -, 0 s\n3: -, 0 s\n");
  EXPECT_EQ(gpu.asked(110, 10), "1: -, 4 s\n2: -, 2.5 s\n3: -, 0 s\n");
  EXPECT_EQ(gpu.asked(112, 2), "1: -, 0.8 s\n2: -, 0.5 s\n3: -, 0 s\n");
  EXPECT_EQ(gpu.asked(122, 0), "1: -, 0 s\n2: -, 0 s\n3: -, 0 s\n");  // after a gap
  EXPECT_EQ(gpu.asked(132, 10), "1: -, 4 s\n2: -, 2.5 s\n3: -, 0 s\n");
}

// Process 1 works in the first second of each ten, process 2 in the last. The timestamps are those of their
// last samples, but each mean covers the whole time.
TEST(ProcessBusy, WhoWorksShortlyHasItsTimeWheneverItWas) {
  FakeDriver driver(
      scenario("compute: [{pid: 1, sm: {square: {period: 10, duty: 0.1, high: 100, low: 0}}}, "
               "{pid: 2, sm: {square: {period: 10, duty: 0.9, high: 0, low: 100}}}]"));
  ListedGpu gpu(driver);
  gpu.asked(10, 0);
  EXPECT_EQ(gpu.asked(20, 10), "1: -, 1 s\n2: -, 1 s\n");
  EXPECT_EQ(gpu.asked(30, 10), "1: -, 1 s\n2: -, 1 s\n");
}

TEST(ProcessBusy, AnIdleTimeIsNotAveragedInTwice) {
  FakeDriver driver(scenario("compute: [{pid: 1, sm: {steps: [[0, 100], [15, 0], [20, 100]]}}]"));
  ListedGpu gpu(driver);
  gpu.asked(10, 0);
  EXPECT_EQ(gpu.asked(20, 10), "1: -, 5 s\n");
  EXPECT_EQ(gpu.asked(30, 10), "1: -, 10 s\n");
}

constexpr auto kWorksLater = "compute: [{pid: 1, sm: {steps: [[0, 100], [10, 0], [45, 100]]}}]";

TEST(ProcessBusy, NobodyAtWorkIsZeroAndNotAbsent) {
  FakeDriver driver(scenario(kWorksLater));
  ListedGpu gpu(driver);
  gpu.asked(10, 0);
  for (const double at : {20, 30, 40}) EXPECT_EQ(gpu.asked(at, 10), "1: -, 0 s\n");
  EXPECT_EQ(gpu.asked(50, 10), "1: -, 5 s\n");
  EXPECT_EQ(gpu.asked(60, 10), "1: -, 10 s\n");
}

// The driver keeps its last samples as long as it takes no others.
TEST(ProcessBusy, WhatWasCountedIsNotCountedAgainWhereTheDriverStopsSampling) {
  FakeDriver driver(scenario(kWorksLater, "period_ms: 200, dry: [[10, 45]]"));
  ListedGpu gpu(driver);
  gpu.asked(0, 0);
  EXPECT_EQ(gpu.asked(10, 10), "1: -, 10 s\n");
  for (const double at : {20, 30, 40}) EXPECT_EQ(gpu.asked(at, 10), "1: -, 0 s\n");
  gpu.asked(50, 10);
  EXPECT_EQ(gpu.asked(60, 10), "1: -, 10 s\n");
}

TEST(ProcessBusy, AClockThatIsSetBackCostsOneTime) {
  FakeDriver driver(scenario("compute: [{pid: 1, sm: 50}]"));
  ListedGpu gpu(driver);
  gpu.asked(1000, 0);
  EXPECT_EQ(gpu.asked(1010, 10), "1: -, 5 s\n");
  EXPECT_EQ(gpu.asked(500, 10), "1: -, 0 s\n");
  EXPECT_EQ(gpu.asked(510, 10), "1: -, 5 s\n");
}

TEST(ProcessBusy, OneThatIsToldOfTwiceIsNotTwiceAtWork) {
  FakeDriver driver(scenario("compute: [{pid: 1, sm: 40}], graphics: [{pid: 1, sm: 40}]"));
  ListedGpu gpu(driver);
  gpu.asked(10, 0);
  EXPECT_EQ(gpu.asked(20, 10), "1: -, 4 s\n");
}

TEST(ProcessBusy, RemainsOfDeadProcessesAreNoTime) {
  FakeDriver driver(scenario("compute: [{pid: 1, sm: 808334905}, {pid: 2, sm: 30}]"));
  ListedGpu gpu(driver);
  gpu.asked(10, 0);
  EXPECT_EQ(gpu.asked(20, 10), "1: -, 0 s\n2: -, 3 s\n");
}

TEST(ProcessBusy, MoreProcessesThanThereIsRoomFor) {
  std::string processes = "compute: [";
  std::string expected;
  for (int i = 1; i <= 200; ++i) {
    processes += "{pid: " + std::to_string(i) + ", sm: 100}, ";
    expected += std::to_string(i) + ": -, 10 s\n";
  }
  FakeDriver driver(scenario(processes + "]"));
  ListedGpu gpu(driver);
  gpu.asked(10, 0);
  EXPECT_EQ(gpu.asked(20, 10), expected);
  const auto before = driver.calls("nvmlDeviceGetProcessesUtilizationInfo");
  EXPECT_EQ(gpu.asked(30, 10), expected);
  EXPECT_EQ(driver.calls("nvmlDeviceGetProcessesUtilizationInfo") - before, 1U);
}

constexpr auto kPresent = "nvmlDeviceGetProcessesUtilizationInfo";
constexpr auto kFormer = "nvmlDeviceGetProcessUtilization";

std::string by_library(const std::vector<std::string>& lacking, const std::string& errors = "{}") {
  FakeDriver driver("devices: [{uuid: GPU-0, errors: " + errors +
                        ", processes: {samples: {period_ms: 200}, compute: [{pid: 1, sm: 40}]}}]",
                    lacking);
  ListedGpu gpu(driver);
  gpu.asked(10, 0);
  return gpu.asked(20, 10);
}

TEST(ProcessBusy, ByWhicheverCallThereIs) {
  EXPECT_EQ(by_library({kPresent}), "1: -, 4 s\n");
  EXPECT_EQ(by_library({kFormer}), "1: -, 4 s\n");
  EXPECT_EQ(by_library({}, "{nvmlDeviceGetProcessesUtilizationInfo: {error: not_supported}}"), "1: -, 4 s\n");
}

TEST(ProcessBusy, NotToldIsAbsentAndTakesNobodyOffTheList) {
  EXPECT_EQ(by_library({kPresent, kFormer}), "1: -, -\n");
  EXPECT_EQ(by_library({}, "{nvmlDeviceGetProcessesUtilizationInfo: {error: unknown}}"), "1: -, -\n");
  EXPECT_EQ(by_library({}, "{nvmlDeviceGetProcessesUtilizationInfo: {error: no_permission}}"), "1: -, -\n");
}

}  // namespace
}  // namespace gpumeter::nvidia
