#include "collectors/nvidia/processes/vgpus.hpp"

#include <gtest/gtest.h>

#include "tests/unit/collectors/nvidia/listed_gpu.hpp"

// The virtual machines of a vGPU host. The fake's samples are a second apart.

namespace gpumeter::nvidia {
namespace {

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

}  // namespace
}  // namespace gpumeter::nvidia
