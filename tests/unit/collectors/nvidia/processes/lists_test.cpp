#include "collectors/nvidia/processes/lists.hpp"

#include <gtest/gtest.h>

#include "tests/unit/collectors/nvidia/listed_gpu.hpp"

// The processes on a GPU, by the driver's lists.

namespace gpumeter::nvidia {
namespace {

TEST(ProcessLists, OneInSeveralListsStandsOnceWithTheMemoryOfOne) {
  EXPECT_EQ(listed_of("processes: {compute: [{pid: 100, memory: 1000}], "
                      "graphics: [{pid: 200, memory: 50}, {pid: 100, memory: 1000}], "
                      "mps: [{pid: 100, memory: 1200}]}"),
            "100: 1200 B, -\n"
            "200: 50 B, -\n");
}

TEST(ProcessLists, SeveralEntriesOfOneListAddUp) {
  EXPECT_EQ(listed_of("processes: {compute: [{pid: 100, memory: 1000}, {pid: 100, memory: 1000}], "
                      "graphics: [{pid: 100, memory: 1500}]}"),
            "100: 2000 B, -\n");
}

TEST(ProcessLists, UnknownMemoryIsAbsentUnlessAnotherListTellsIt) {
  EXPECT_EQ(listed_of("processes: {compute: [{pid: 100}, {pid: 200}], graphics: [{pid: 200, memory: 7}]}"),
            "100: -, -\n"
            "200: 7 B, -\n");
}

TEST(ProcessLists, OneOfSeveralGpuInstancesHasTheSumUnlessOneIsUnknown) {
  EXPECT_EQ(listed_of("processes: {compute: [{pid: 100, memory: 10, gi: 1, ci: 0}, "
                      "{pid: 100, memory: 10, gi: 2, ci: 0}, {pid: 200, memory: 10, gi: 1, ci: 0}, "
                      "{pid: 200, gi: 2, ci: 0}]}"),
            "100: 20 B, -\n"
            "200: -, -\n");
}

TEST(ProcessLists, NobodyIsNotTheSameAsNotTold) {
  EXPECT_EQ(listed_of("processes: {compute: []}"), "");
  EXPECT_EQ(listed_of("name: of old"), "unsupported");
}

TEST(ProcessLists, OneThatTheDriverCannotNameHereIsLeftOut) {
  EXPECT_EQ(listed_of("processes: {compute: [{pid: 0, memory: 1}, {pid: 5, memory: 2}]}"), "5: 2 B, -\n");
}

TEST(ProcessLists, ALibraryWithoutThemTellsNothing) {
  FakeDriver driver("devices: [{uuid: GPU-0, processes: {compute: [{pid: 1}]}}]",
                    {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3",
                     "nvmlDeviceGetMPSComputeRunningProcesses_v3"});
  EXPECT_EQ(ListedGpu(driver).listed(), "unsupported");
}

// Otherwise the processes of the failing list would appear to be gone.
TEST(ProcessLists, OneThatFailsTakesTheOthersWithItButNoPass) {
  constexpr auto kProcesses = "processes: {compute: [{pid: 1}], graphics: [{pid: 2}]}, errors: ";
  for (const auto& [error, status] : {std::pair("timeout", "timeout"), std::pair("no_permission", "denied"),
                                      std::pair("insufficient_size", "failed")}) {
    EXPECT_EQ(listed_of(std::string(kProcesses) +
                        "{nvmlDeviceGetGraphicsRunningProcesses_v3: {error: " + error + "}}"),
              status);
  }
}

std::string many(int count) {
  std::string keys = "processes: {compute: [";
  for (int i = 1; i <= count; ++i)
    keys += "{pid: " + std::to_string(i) + ", memory: 1, present: {steps: [[0, " + (i <= 3 ? "yes" : "no") +
            "], [10, yes]]}}, ";
  return keys + "]}";
}

TEST(ProcessLists, GrowWithTheirNumberAndAreAskedOnceAfterwards) {
  FakeDriver driver("devices: [{uuid: GPU-0, " + many(300) + "}]");
  ListedGpu gpu(driver);
  EXPECT_EQ(gpu.listed(0), "1: 1 B, -\n2: 1 B, -\n3: 1 B, -\n");
  std::string all;
  for (int i = 1; i <= 300; ++i) all += std::to_string(i) + ": 1 B, -\n";
  EXPECT_EQ(gpu.listed(10, 10), all);
  EXPECT_EQ(driver.calls("nvmlDeviceGetComputeRunningProcesses_v3"), 3U);  // one call finds the count
  EXPECT_EQ(gpu.listed(20, 10), all);
  EXPECT_EQ(driver.calls("nvmlDeviceGetComputeRunningProcesses_v3"), 4U);
}

TEST(ProcessLists, MoreThanAnyMachineHasAreNotBelieved) {
  FakeDriver driver("devices: [{uuid: GPU-0, " + many(4097) + "}]");
  ListedGpu gpu(driver);
  EXPECT_EQ(gpu.listed(10), "failed");
}

constexpr auto kThree =
    "processes: {compute: [{pid: 100, memory: 2097152, gi: 1, ci: 0}, "
    "{pid: 200, memory: 2097152}, {pid: 300, memory: 4096}], graphics: [{pid: 400, memory: 1}]}";
constexpr auto kThreeListed = "100: 2097152 B, -\n200: 2097152 B, -\n300: 4096 B, -\n400: 1 B, -\n";

TEST(ProcessLists, TheLongerEntriesOfDriver535AreRead) {
  EXPECT_EQ(listed_of(kThree, "system: {driver_version: 535.54.03}\nlayouts: {process_info: 32}"),
            kThreeListed);
}

TEST(ProcessLists, TheShorterEntriesOfDriver535AreReadAsEverywhere) {
  EXPECT_EQ(listed_of(kThree, "system: {driver_version: 535.183.01}"), kThreeListed);
  EXPECT_EQ(listed_of(kThree, "system: {driver_version: 580.95.05}"), kThreeListed);
}

}  // namespace
}  // namespace gpumeter::nvidia
