#include "collectors/nvidia/collector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/fake_driver.hpp"

namespace gpumeter::nvidia {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Discovering : public testing::Test {
 protected:
  std::unique_ptr<Collector> open(const std::string& library) {
    return *open_nvidia({sysfs_.path(), "/proc", &clock_, {{"library", {library}}, {"links", {"sum"}}}});
  }
  /// Adds an NVIDIA display adapter on the bus, bound to this driver; empty: to none.
  void plug(const std::string& address, const std::string& driver) {
    const std::string bound = driver.empty() ? "" : "DRIVER=" + driver + "\n";
    sysfs_.write("bus/pci/devices/" + address + "/uevent", bound + "PCI_CLASS=30200\nPCI_ID=10DE:2330\n");
  }
  std::string trouble_of(const std::string& library) {
    const Result<Discovery> found = open(library)->discover();
    return found ? "" : found.error().message();
  }

  const Tree sysfs_{{}};
  FakeClock clock_;
};

constexpr auto kNoLibrary = "/nonexistent/libnvidia-ml.so.1";

TEST_F(Discovering, AMachineWithoutNvidiaIsQuiet) {
  const Result<Discovery> found = open(kNoLibrary)->discover();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->devices, IsEmpty());
  EXPECT_THAT(found->notes, IsEmpty());
}

TEST_F(Discovering, AGpuWithoutTheLibraryIsTrouble) {
  plug("0000:1b:00.0", "nvidia");
  EXPECT_EQ(trouble_of(kNoLibrary),
            "/nonexistent/libnvidia-ml.so.1: cannot open shared object file: No such file or directory");
  plug("0000:1b:00.0", "");
  EXPECT_NE(trouble_of(kNoLibrary), "");
}

TEST_F(Discovering, AGpuOfAVirtualMachineIsNotedAndNoTrouble) {
  plug("0000:1b:00.0", "vfio-pci");
  plug("0000:43:00.0", "nouveau");
  const Result<Discovery> found = open(kNoLibrary)->discover();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->devices, IsEmpty());
  EXPECT_THAT(
      found->notes,
      ElementsAre(
          "0000:1b:00.0: NVIDIA GPU bound to vfio-pci, so it belongs to a virtual machine and is not read",
          "0000:43:00.0: NVIDIA GPU bound to nouveau, so this collector does not read it; NVIDIA's driver "
          "would "
          "make it readable"));
}

TEST_F(Discovering, AnotherVendorsGpuIsNotItsBusiness) {
  sysfs_.write("bus/pci/devices/0000:0c:00.0/uevent", "DRIVER=vfio-pci\nPCI_CLASS=30000\nPCI_ID=1002:73BF\n");
  const Result<Discovery> found = open(kNoLibrary)->discover();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->notes, IsEmpty());
}

TEST_F(Discovering, NoDriverIsSaidInWords) {
  const FakeDriver driver("include: fixtures/no_driver.yaml");
  driver.set_time(0);
  EXPECT_EQ(trouble_of(driver.library()),
            driver.library() + ": the kernel module is not loaded: modprobe nvidia");
}

TEST_F(Discovering, ADriverOfAnotherVersionIsSaidInWords) {
  const FakeDriver driver("include: fixtures/driver_mismatch.yaml");
  driver.set_time(0);
  EXPECT_EQ(trouble_of(driver.library()), driver.library() +
                                              ": reboot needed: the driver's library and its kernel module "
                                              "have different versions, as after an "
                                              "upgrade; unloading and loading the module also works");
}

TEST_F(Discovering, ADriverThatComesLaterIsFound) {
  const FakeDriver driver(R"(
errors: {nvmlInit_v2: {steps: [[0, {error: driver_not_loaded}], [3, ok]]}}
devices: [{uuid: GPU-0}]
)");
  driver.set_time(0);
  const auto collector = open(driver.library());
  EXPECT_FALSE(collector->discover());
  driver.set_time(3);
  const Result<Discovery> found = collector->discover();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->devices.size(), 1U);
}

TEST_F(Discovering, TellsWhoEachGpuIs) {
  const FakeDriver driver("include: fixtures/h200_mig7.yaml");
  driver.set_time(0);
  const Result<Discovery> found = open(driver.library())->discover();
  ASSERT_TRUE(found);
  ASSERT_EQ(found->devices.size(), 1U);
  const DeviceInfo& gpu = found->devices.front();
  EXPECT_EQ(gpu.vendor, "nvidia");
  EXPECT_EQ(gpu.uuid, "GPU-c2000000-0000-4000-8000-000000000000");
  EXPECT_EQ(gpu.model, "NVIDIA H200");
  EXPECT_EQ(gpu.pci_address, "0000:83:00.0");
  EXPECT_EQ(gpu.serial, "1650324000000");
  EXPECT_EQ(gpu.driver_version, "590.48.01");
  EXPECT_EQ(gpu.vbios_version, "96.00.A5.00.03");
  EXPECT_EQ(gpu.firmware_version, "590.48.01");
  EXPECT_EQ(gpu.architecture, "hopper");
  EXPECT_EQ(gpu.vendor_index, "0");
  EXPECT_EQ(gpu.minor, "0");
  EXPECT_EQ(gpu.compute_units, 132);
  EXPECT_EQ(gpu.numa_node, std::nullopt);
  EXPECT_EQ(gpu.memory_numa_node, std::nullopt);
  EXPECT_TRUE(gpu.partitioning.starts_with("1g.18gb:7=MIG-c2000000-0000-5000-8000-000000000000, 1g.18gb:8="));
}

// On Grace the memory is a node of its own. The bus reports the node that the GPU is attached to.
TEST_F(Discovering, TheBusSaysItsNumaNodeAndNvmlThatOfItsMemory) {
  const FakeDriver driver(R"(
devices:
  - {uuid: GPU-0, numa_node: 4, pci: {bus_id: "00000009:01:00.0"}}
  - {uuid: GPU-1, pci: {bus_id: "00000000:1B:00.0"}}
  - {uuid: GPU-2, pci: {bus_id: "00000000:43:00.0"}}
)");
  driver.set_time(0);
  for (const auto& [address, node] :
       {std::pair("0009:01:00.0", "1"), std::pair("0000:1b:00.0", "-1"), std::pair("0000:43:00.0", "0")}) {
    plug(address, "nvidia");
    sysfs_.write("bus/pci/devices/" + std::string(address) + "/numa_node", std::string(node) + "\n");
  }
  const Result<Discovery> found = open(driver.library())->discover();
  ASSERT_TRUE(found);
  ASSERT_EQ(found->devices.size(), 3U);
  EXPECT_EQ(found->devices[0].numa_node, 1);
  EXPECT_EQ(found->devices[0].memory_numa_node, 4);
  EXPECT_EQ(found->devices[1].numa_node, std::nullopt);
  EXPECT_EQ(found->devices[1].memory_numa_node, std::nullopt);
  EXPECT_EQ(found->devices[2].numa_node, 0);
}

TEST_F(Discovering, AnInitThatGivesNoReasonIsSaidInWords) {
  const FakeDriver driver("errors: {nvmlInit_v2: {error: unknown}}\ndevices: []");
  driver.set_time(0);
  EXPECT_EQ(trouble_of(driver.library()),
            driver.library() +
                ": the driver gives no reason (NVML error 999). In a container: access to /dev/nvidia* was "
                "lost, restart the container; otherwise see the NVRM lines in the kernel log");
}

TEST_F(Discovering, AMachineWithoutPciIsReadAllTheSame) {
  const FakeDriver driver("devices: [{uuid: GPU-0, name: NVIDIA Thor}]", {"nvmlDeviceGetPciInfo_v3"});
  driver.set_time(0);
  const Result<Discovery> found = open(driver.library())->discover();
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_EQ(found->devices.size(), 1U);
  EXPECT_EQ(found->devices.front().model, "NVIDIA Thor");
  EXPECT_EQ(found->devices.front().pci_address, "");
}

TEST_F(Discovering, ALostGpuIsNotedAndTheOthersAreFound) {
  const FakeDriver driver("devices: [{uuid: GPU-0}, {uuid: GPU-1, lost: {from: 0}}, {uuid: GPU-2}]");
  driver.set_time(0);
  const Result<Discovery> found = open(driver.library())->discover();
  ASSERT_TRUE(found);
  ASSERT_EQ(found->devices.size(), 2U);
  EXPECT_EQ(found->devices[1].uuid, "GPU-2");
  EXPECT_EQ(found->devices[1].vendor_index, "2");
  EXPECT_THAT(found->notes,
              ElementsAre("GPU 1 of nvidia-smi cannot be read: a GPU has fallen off the bus: reset it "
                          "(nvidia-smi --gpu-reset) or reboot"));
}

TEST_F(Discovering, ADriverThatGoesAwayIsTroubleUntilItIsBack) {
  const FakeDriver driver(R"(
errors: {all: {steps: [[0, ok], [5, {error: uninitialized}], [8, ok]]}}
devices: [{uuid: GPU-0}]
)");
  driver.set_time(0);
  const auto collector = open(driver.library());
  ASSERT_TRUE(collector->discover());
  driver.set_time(5);
  const Result<Discovery> gone = collector->discover();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().message(), driver.library() + ": the driver was unloaded during discovery");
  driver.set_time(8);
  const Result<Discovery> back = collector->discover();
  ASSERT_TRUE(back);
  EXPECT_EQ(back->devices.size(), 1U);
  EXPECT_EQ(driver.violations(), "");
}

TEST_F(Discovering, OnlyTwoWordsAreRightForLinks) {
  const auto checked = [&](const std::string& links) {
    return check_nvidia({"/sys", "/proc", &clock_, {{"links", {links}}}});
  };
  EXPECT_FALSE(checked("sum"));
  EXPECT_FALSE(checked("each"));
  EXPECT_EQ(checked("all")->key, "links");
  EXPECT_EQ(checked("all")->text, "must be sum or each, not \"all\"");
}

TEST_F(Discovering, AnAddressOfDcgmIsAHostOrAnAbsolutePath) {
  const auto checked = [&](const std::string& address) {
    return check_nvidia({"/sys", "/proc", &clock_, {{"links", {"sum"}}, {"dcgm", {address}}}});
  };
  for (const char* good : {"off", "on", "gpu1", "gpu1:5555", "unix:/run/engine"})
    EXPECT_FALSE(checked(good)) << good;
  for (const std::string bad : {"", "unix:engine", "unix:", "/run/engine"}) {
    EXPECT_EQ(checked(bad)->key, "dcgm");
    EXPECT_EQ(checked(bad)->text, "must be off, on, HOST, HOST:PORT or unix:/PATH, not \"" + bad + "\"");
  }
}

}  // namespace
}  // namespace gpumeter::nvidia
