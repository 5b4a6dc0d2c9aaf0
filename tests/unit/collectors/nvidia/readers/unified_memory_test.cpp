#include <gtest/gtest.h>

#include "tests/fakes/nvidia_gpu.hpp"

// GPUs that share the host's memory.

namespace gpumeter::nvidia {
namespace {

constexpr auto kMeminfo = "MemTotal:  1000 kB\nMemFree:  100 kB\nMemAvailable:  400 kB\n";

constexpr auto kPage =
    "gpu_memory_free_bytes{memory=\"unified\"} 409600\n"
    "gpu_memory_size_bytes{memory=\"unified\"} 1024000\n"
    "gpu_memory_used_bytes{memory=\"unified\"} 614400\n";

/// The lines of memory and of the PCIe link of a GPU with these keys.
std::string page_of(const std::string& keys, const std::vector<std::string>& lacking = {},
                    const DeviceInfo& info = gpu_of("GPU-0")) {
  const Tree host({{"meminfo", kMeminfo}});
  FakeDriver driver("devices: [{uuid: GPU-0, temperature: {gpu: 50}, " + keys + "}]", lacking);
  SampledPage page(table_device({driver.library(), false, host.path()}));
  driver.set_time(0);
  page.attach(info);
  for (const Tier tier : kTiers) page.pass(tier);
  return lines_of(page.text(), {"gpu_memory", "gpu_pcie_link", "gpu_fan"});
}

TEST(NvidiaUnifiedMemory, IsTheHostsWhereNvmlKnowsNone) { EXPECT_EQ(page_of(""), kPage); }

TEST(NvidiaUnifiedMemory, ALibraryWithTheFormerCallAloneIsEnough) {
  EXPECT_EQ(page_of("", {"nvmlDeviceGetMemoryInfo_v2"}), kPage);
}

// The driver returns these numbers although the parts do not exist.
TEST(NvidiaUnifiedMemory, HasNoPcieLinkMemoryClockMemoryControllerOrFan) {
  EXPECT_EQ(
      page_of(
          "pcie: {generation: 1, max_generation: 1, width: 1, max_width: 1}, fans: [{percent: 0, rpm: 0}], "
          "utilization: {gpu: 10, memory: 0}"),
      kPage);
}

TEST(NvidiaUnifiedMemory, IsNeverNextToVram) {
  EXPECT_EQ(page_of("memory: {total: 100, used: 40, free: 60}"),
            "gpu_memory_free_bytes{memory=\"vram\"} 60\n"
            "gpu_memory_reserved_bytes{memory=\"vram\"} 0\n"
            "gpu_memory_size_bytes{memory=\"vram\"} 100\n"
            "gpu_memory_used_bytes{memory=\"vram\"} 40\n");
}

TEST(NvidiaUnifiedMemory, AFailingCallIsNoProof) {
  EXPECT_EQ(page_of("errors: {nvmlDeviceGetMemoryInfo: {error: no_permission}, "
                    "nvmlDeviceGetMemoryInfo_v2: {error: no_permission}}"),
            "");
}

// Grace: the memory is the GPU's, and a NUMA node of the host.
TEST(NvidiaUnifiedMemory, AGpuWhoseMemoryIsANumaNodeHasItsOwn) {
  DeviceInfo grace = gpu_of("GPU-0");
  grace.memory_numa_node = 1;
  EXPECT_EQ(page_of("", {}, grace), "");
}

TEST(NvidiaUnifiedMemory, LeavesThePageWhenTheFileIsGoneOrWrong) {
  const Tree host({{"meminfo", kMeminfo}});
  FakeDriver driver("devices: [{uuid: GPU-0, temperature: {gpu: 50}}]");
  SampledPage page(table_device({driver.library(), false, host.path()}));
  driver.set_time(0);
  page.attach(gpu_of("GPU-0"));
  page.pass(Tier::normal);
  EXPECT_EQ(lines_of(page.text(), {"gpu_memory"}), kPage);
  host.write("meminfo", "MemTotal:  1000 kB\n");
  page.pass(Tier::normal);
  EXPECT_EQ(lines_of(page.text(), {"gpu_memory"}), "");
}

}  // namespace
}  // namespace gpumeter::nvidia
