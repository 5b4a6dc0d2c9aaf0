#include "collectors/nvidia/processes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/unit/collectors/nvidia/listed_gpu.hpp"

namespace gpumeter::nvidia {
namespace {

// The processes on a GPU, by the driver's lists.
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

// Busy time of each process. The fake's samples are 200 ms apart, and it remembers 72 of them.
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

// The virtual machines of a vGPU host. The fake's samples are a second apart.
constexpr auto kHost = R"(
devices:
  - uuid: GPU-0
    temperature: {gpu: 50}
    virtualization: host_vgpu
    processes: {compute: [{pid: 1710, memory: 300}], graphics: []}
    vgpus:
      active:
        - {id: 11, vm: vm-a, memory: 200, sm: 40, present: {steps: [[0, yes], [30, no]]}}
        - {id: 12, vm: vm-b, memory: 100, sm: 20, present: {steps: [[0, yes], [30, no]]}}
        - {id: 13, memory: 50, present: {steps: [[0, no], [20, yes], [30, no]]}}
      samples: {period_ms: 1000}
)";

TEST(Vgpus, MachinesTakeThePlaceOfTheManagersProcess) {
  FakeDriver driver(kHost);
  ListedGpu gpu(driver);
  EXPECT_EQ(gpu.asked(5, 0), "vm-a: 200 B, 0 s\nvm-b: 100 B, 0 s\n");
  EXPECT_EQ(gpu.asked(10, 5), "vm-a: 200 B, 2 s\nvm-b: 100 B, 1 s\n");
}

TEST(Vgpus, AMachineWithoutAnIdentityIsNamedByItsVirtualGpu) {
  FakeDriver driver(kHost);
  ListedGpu gpu(driver);
  gpu.asked(5, 0);
  EXPECT_EQ(gpu.asked(20, 15), "vm-a: 200 B, 6 s\nvm-b: 100 B, 3 s\nvgpu-13: 50 B, 0 s\n");
}

TEST(Vgpus, WithoutAnActiveOneProcessesAreListed) {
  FakeDriver driver(kHost);
  ListedGpu gpu(driver);
  EXPECT_EQ(gpu.asked(30, 0), "1710: 300 B, -\n");
}

TEST(Vgpus, TheFormerCallIsUsedIfTheLibraryLacksThePresentOne) {
  FakeDriver driver(kHost, {"nvmlDeviceGetVgpuInstancesUtilizationInfo"});
  ListedGpu gpu(driver);
  gpu.asked(5, 0);
  EXPECT_EQ(gpu.asked(10, 5), "vm-a: 200 B, 2 s\nvm-b: 100 B, 1 s\n");
}

TEST(Vgpus, TheIdentityIsAskedOnce) {
  FakeDriver driver(kHost);
  ListedGpu gpu(driver);
  for (const double at : {5, 10, 15}) gpu.asked(at, 5);
  EXPECT_EQ(driver.calls("nvmlVgpuInstanceGetVmID"), 2U);
}

TEST(Vgpus, AGpuThatIsNoHostIsNotAskedForVirtualGpus) {
  FakeDriver driver("devices: [{uuid: GPU-0, processes: {compute: [{pid: 7, memory: 9}]}}]");
  ListedGpu gpu(driver);
  EXPECT_EQ(gpu.asked(5, 0), "7: 9 B, -\n");
  EXPECT_EQ(driver.calls("nvmlDeviceGetActiveVgpus"), 0U);
}

TEST(Vgpus, AListThatFailsInvalidatesThePass) {
  FakeDriver driver(std::string("errors: {nvmlDeviceGetActiveVgpus: {error: unknown}}") + kHost);
  ListedGpu gpu(driver);
  EXPECT_EQ(gpu.asked(5, 0), "failed");
}

// Processes of divided and lost GPUs, and the number of driver calls.
// Instance 1 is divided again, into two compute instances.
std::string divided(const std::string& of_gpu) {
  return "devices:\n  - uuid: GPU-0\n    " + of_gpu + R"(
    mig:
      mode: enabled
      mode_pending: enabled
      most: 7
      instances:
        - {index: 0, gi: 1, ci: 0, uuid: MIG-0, processes: {compute: [{pid: 10, memory: 100}]}}
        - {index: 1, gi: 1, ci: 1, uuid: MIG-1, processes: {compute: [{pid: 11, memory: 200}]}}
        - {index: 3, gi: 2, ci: 0, uuid: MIG-3, processes: {compute: [{pid: 10, memory: 30, gi: 2, ci: 0}]}}
)";
}

constexpr auto kOfInstances = "10: 130 B, -\n11: 200 B, -\n";

TEST(GpuProcesses, OfADividedGpuItsOwnListsHaveEverybody) {
  FakeDriver driver(divided(
      "processes: {samples: {period_ms: 200}, compute: [{pid: 10, memory: 100, sm: 50, gi: 1, ci: 0}]}"));
  ListedGpu gpu(driver);
  EXPECT_EQ(gpu.listed(), "10: 100 B, -\n");
  EXPECT_EQ(driver.calls("nvmlDeviceGetComputeRunningProcesses_v3"), 1U);
}

TEST(GpuProcesses, WhereItsOwnListsAreEmptyOrNotThereEachInstanceIsAsked) {
  for (const auto* const own : {"processes: {compute: []}", "name: without"}) {
    FakeDriver driver(divided(own));
    EXPECT_EQ(ListedGpu(driver).listed(), kOfInstances) << own;
  }
}

// A 3g.40gb at 80 % of 60 multiprocessors, a 1g.10gb at 40 % of 16, and an idle 1g.10gb without processes;
// three eighths of the memory belong to no instance.
TEST(GpuProcesses, OfADividedGpuHaveTheActivityOfTheirInstances) {
  FakeDriver driver(R"(devices:
  - uuid: GPU-0
    memory: {total: 81559 MiB, reserved: 0 MiB, used: 0 MiB, free: 81559 MiB}
    processes: {compute: [{pid: 10, memory: 300, gi: 1, ci: 0}, {pid: 11, memory: 100, gi: 1, ci: 0},
                          {pid: 12, memory: 50, gi: 2, ci: 0}]}
    gpm: {supported: yes, metrics: {2: 50}}
    mig:
      mode: enabled
      mode_pending: enabled
      most: 7
      instances:
        - {index: 0, gi: 1, ci: 0, uuid: MIG-0, gpm: {supported: yes, metrics: {2: 80}},
           attributes: {multiprocessors: 60, gpu_slices: 3, compute_slices: 3, memory: 40448 MiB}}
        - {index: 1, gi: 2, ci: 0, uuid: MIG-1, gpm: {supported: yes, metrics: {2: 40}},
           attributes: {multiprocessors: 16, gpu_slices: 1, compute_slices: 1, memory: 9728 MiB}}
        - {index: 2, gi: 3, ci: 0, uuid: MIG-2, gpm: {supported: yes, metrics: {2: 0}},
           attributes: {multiprocessors: 16, gpu_slices: 1, compute_slices: 1, memory: 9728 MiB}}
)");
  ListedGpu gpu(driver);
  std::this_thread::sleep_for(std::chrono::milliseconds(120));  // GPM's samples are 110 ms apart
  ASSERT_EQ(gpu.pass(1, 1), PassOutcome::complete);
  std::vector<DeviceProcess> list;
  ASSERT_EQ(gpu.device().processes({Tier::normal, {}, {}}, list), ReadStatus::ok);
  ASSERT_EQ(list.size(), 4U);
  double active = 0;
  double held = 0;
  for (const DeviceProcess& process : list) {
    active += process.device_seconds.value();
    held += process.held_ratio.value();
  }
  const double of_large = 80.0 * 60 / (80 * 60 + 40 * 16);
  EXPECT_NEAR(*list[0].device_seconds / active, of_large * 0.75, 0.05);
  EXPECT_NEAR(*list[1].device_seconds / active, of_large * 0.25, 0.05);
  EXPECT_NEAR(*list[2].device_seconds / active, 1 - of_large, 0.05);
  EXPECT_EQ(list[0].held_ratio, 0.375);
  EXPECT_EQ(list[1].held_ratio, 0.125);
  EXPECT_EQ(list[2].held_ratio, 0.125);
  EXPECT_EQ(list[3], (DeviceProcess{.device_seconds = 0, .held_ratio = 0.375}));
  EXPECT_EQ(held, 1);
  list.clear();
  ASSERT_EQ(gpu.device().processes({Tier::normal, {}, {}}, list), ReadStatus::ok);
  EXPECT_EQ(list[0].device_seconds, std::nullopt) << "no new sample";
  EXPECT_EQ(list[0].held_ratio, 0.375);
}

constexpr auto kLostAt15 = R"(
devices:
  - uuid: GPU-0
    lost: {from: 15, until: 30}
    processes: {samples: {period_ms: 200}, compute: [{pid: 10, memory: 100, sm: 50}]}
)";

TEST(GpuProcesses, AGpuThatIsLostMeanwhileIsLostAtTheNextPass) {
  FakeDriver driver(kLostAt15);
  ListedGpu gpu(driver);
  EXPECT_EQ(gpu.listed(0), "10: 100 B, 0 s\n");
  EXPECT_EQ(gpu.pass(14, 10), PassOutcome::complete);
  EXPECT_EQ(gpu.asked(15, 10), "gone");
  const auto calls = driver.calls();
  EXPECT_EQ(gpu.asked(15, 10), "gone");
  EXPECT_EQ(driver.calls(), calls);
  EXPECT_EQ(gpu.pass(16, 1), PassOutcome::gone);
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
  EXPECT_EQ(gpu.asked(16, 1), "unsupported");
  ASSERT_TRUE((driver.set_time(31), gpu.device().attach(gpu_of("GPU-0"))));
  EXPECT_EQ(gpu.asked(31, 0), "10: 100 B, 0 s\n");
  EXPECT_EQ(gpu.asked(41, 10), "10: 100 B, 5 s\n");
  gpu.device().release();
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
  EXPECT_EQ(driver.violations(), "");
}

TEST(GpuProcesses, ADriverThatIsUnloadedMeanwhileIsLetGo) {
  FakeDriver driver(std::string(kLostAt15) +
                    "errors: {nvmlDeviceGetGraphicsRunningProcesses_v3: "
                    "{steps: [[0, ok], [5, {error: driver_not_loaded}]]}}\n");
  ListedGpu gpu(driver);
  EXPECT_EQ(gpu.listed(0), "10: 100 B, 0 s\n");
  EXPECT_EQ(gpu.pass(5, 5), PassOutcome::complete);
  EXPECT_EQ(gpu.asked(5, 5), "gone");
  EXPECT_EQ(gpu.pass(6, 1), PassOutcome::gone);
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
}

TEST(GpuProcesses, CostFourCallsEachTime) {
  FakeDriver driver("include: fixtures/h100_8.yaml");
  ListedGpu gpu(driver, "GPU-a1000000-0000-4000-8000-000000000000");
  EXPECT_EQ(gpu.listed(1), "21180: 72351744000 B, 0 s\n");
  EXPECT_EQ(gpu.asked(11, 10), "21180: 72351744000 B, 9.7 s\n");
  const auto before = driver.calls();
  EXPECT_EQ(gpu.asked(21, 10), "21180: 72351744000 B, 9.7 s\n");
  EXPECT_EQ(driver.calls() - before, 4U);
  EXPECT_EQ(gpu.device().processes_tier(), Tier::normal);
}

}  // namespace
}  // namespace gpumeter::nvidia
