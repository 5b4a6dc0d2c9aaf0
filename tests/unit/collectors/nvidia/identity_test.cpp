#include "collectors/nvidia/identity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "tests/fakes/fake_driver.hpp"
#include "tests/fakes/nvidia_gpu.hpp"

namespace gpumeter::nvidia {
namespace {

// A GPU is opened by its UUID, whatever the state of the others.
std::string two(const std::string& of_first) {
  return "devices: [{uuid: GPU-0, " + of_first + "}, {uuid: GPU-1, temperature: {gpu: 50}}]";
}

std::string second_gpu(FakeDriver& driver) {
  NvidiaGpu gpu(driver, "GPU-1");
  return gpu.attach().sampled();
}

constexpr auto kPage = "gpu_temperature_celsius{sensor=\"core\"} 50\n";

TEST(FindGpu, ByItsUuidNoOtherIsAsked) {
  FakeDriver driver(two("temperature: {gpu: 40}"));
  EXPECT_EQ(second_gpu(driver), kPage);
  EXPECT_EQ(driver.calls("nvmlDeviceGetHandleByUUID"), 1U);
  EXPECT_EQ(driver.calls("nvmlDeviceGetHandleByIndex_v2"), 0U);
}

TEST(FindGpu, OneByOneInALibraryWithoutTheCall) {
  FakeDriver driver(two("temperature: {gpu: 40}"), {"nvmlDeviceGetHandleByUUID"});
  EXPECT_EQ(second_gpu(driver), kPage);
  EXPECT_EQ(driver.calls("nvmlDeviceGetHandleByIndex_v2"), 2U);
}

TEST(FindGpu, OneByOneIfTheSearchFails) {
  FakeDriver driver(two("temperature: {gpu: 40}") +
                    "\nerrors: {nvmlDeviceGetHandleByUUID: {error: unknown}}");
  EXPECT_EQ(second_gpu(driver), kPage);
}

TEST(FindGpu, NoneOfThatUuidIsAnError) {
  FakeDriver driver(two("temperature: {gpu: 40}"));
  const auto device = table_device({driver.library(), false});
  EXPECT_FALSE(device->attach(gpu_of("GPU-2")));
}

/// Returns "name{facts} ..." for the instances of this `mig:`.
std::string instances(const std::string& mig) {
  FakeDriver driver("devices: [{uuid: GPU-0, mig: {mode_pending: enabled, " + mig + "}}]");
  driver.set_time(0);
  NvmlCaller gpu = *find_gpu(*NvmlSession::shared(driver.library()), "GPU-0");
  std::string text;
  for (const MigInstance& instance : mig_instances(gpu)) {
    text += instance.partition.name;
    for (const Label& fact : instance.partition.facts) text += " " + fact.name + "=" + fact.value;
    for (const std::vector<Label>& part : instance.partition.parts) {
      text += " +";
      for (const Label& fact : part) text += " " + fact.name + "=" + fact.value;
    }
    text += "; ";
  }
  EXPECT_EQ(driver.violations(), "");
  return text + fingerprint(mig_instances(gpu));
}

TEST(MigInstances, ProfileComesFromTheName) {
  EXPECT_EQ(instances(R"(mode: enabled, most: 7, instances: [
              {uuid: MIG-a, gi: 1, ci: 0, name: NVIDIA H100 80GB HBM3 MIG 3g.40gb},
              {uuid: MIG-b, gi: 2, ci: 0, name: NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb},
              {uuid: MIG-c, gi: 9, ci: 0, name: NVIDIA H100 80GB HBM3 MIG 1g.10gb+me}])"),
            "3g.40gb:1 profile=3g.40gb gpu_instance=1 mig_uuid=MIG-a; "
            "3g.40gb:2 profile=3g.40gb gpu_instance=2 mig_uuid=MIG-b; "
            "1g.10gb+me:9 profile=1g.10gb+me gpu_instance=9 mig_uuid=MIG-c; "
            "3g.40gb:1=MIG-a, 3g.40gb:2=MIG-b, 1g.10gb+me:9=MIG-c");
}

TEST(MigInstances, APrivilegedCallerKnowsTheirPlaces) {
  EXPECT_EQ(instances(R"(mode: enabled, most: 7, instances: [
              {uuid: MIG-a, gi: 7, ci: 0, name: A MIG 1g.10gb, gi_profile: 19, gi_start: 4},
              {uuid: MIG-b, gi: 8, ci: 0, name: A MIG 1g.10gb}])"),
            "1g.10gb:7 profile=1g.10gb gpu_instance=7 mig_uuid=MIG-a profile_id=19 placement=4; "
            "1g.10gb:8 profile=1g.10gb gpu_instance=8 mig_uuid=MIG-b; "
            "1g.10gb:7=MIG-a, 1g.10gb:8=MIG-b");
}

TEST(MigInstances, ElseFromSlicesAndMemoryElseThereIsNone) {
  EXPECT_EQ(instances(R"(mode: enabled, most: 7, instances: [
              {gi: 1, name: NVIDIA H200, attributes: {multiprocessors: 16, copy_engines: 1, decoders: 1,
               encoders: 0, jpegs: 1, ofas: 0, gpu_slices: 1, compute_slices: 1, memory: 17920 MiB}},
              {gi: 2, name: NVIDIA H200}])"),
            "1g.18gb:1 profile=1g.18gb gpu_instance=1 compute_units=16; "
            "mig:2 profile=mig gpu_instance=2; "
            "1g.18gb:1=, mig:2=");
}

TEST(MigInstances, ComputeInstancesOfOneGpuInstanceAreOneAndHolesAreNoEnd) {
  EXPECT_EQ(
      instances(R"(mode: enabled, most: 7, instances: [
              {index: 1, uuid: MIG-a, gi: 5, ci: 0, name: A MIG 1c.2g.20gb},
              {index: 2, uuid: MIG-b, gi: 5, ci: 1, name: A MIG 1c.2g.20gb},
              {index: 6, uuid: MIG-c, gi: 6, ci: 0, name: A MIG 2g.20gb}])"),
      "2g.20gb:5 profile=2g.20gb gpu_instance=5 + compute_instance=0 mig_uuid=MIG-a + compute_instance=1 "
      "mig_uuid=MIG-b; "
      "2g.20gb:6 profile=2g.20gb gpu_instance=6 mig_uuid=MIG-c; "
      "2g.20gb:5=MIG-a+MIG-b, 2g.20gb:6=MIG-c");
}

TEST(MigInstances, AGpuThatIsNotDividedHasNone) {
  EXPECT_EQ(instances("mode: disabled, most: 7, instances: [{uuid: MIG-a, gi: 1, ci: 0}]"), "");
}

// Where NVLinks lead: to a GPU, to a switch of the bus, to a switch beyond it, or nowhere.
using testing::ElementsAre;
using testing::IsEmpty;

/// Where `count` links lead that are as `links` describes them.
std::vector<std::string> peers(int count, const std::string& links,
                               const std::vector<std::string>& without = {}) {
  const std::string number = std::to_string(count);
  const FakeDriver driver("devices: [{uuid: GPU-0, fields: {91: " + number + "}, nvlink: {count: " + number +
                              ", " + links + "}}]",
                          without);
  driver.set_time(0);
  const auto session = NvmlSession::shared(driver.library());
  std::optional<NvmlCaller> gpu = find_gpu(*session, "GPU-0");
  return identify(*gpu, 0)->linked_to;
}

TEST(LinkPeers, ABridgeLeadsToTheOtherGpu) {
  EXPECT_THAT(peers(4, "link: {remote: gpu, remote_address: \"0001:4b:00.0\"}"), ElementsAre("0001:4b:00.0"));
}

TEST(LinkPeers, SeveralGpusAreSortedAndALinkThatIsDownLeadsNowhere) {
  EXPECT_THAT(peers(3,
                    "link: {remote: gpu, remote_address: \"0000:c1:00.0\"}, links: {1: {remote: ~}, "
                    "2: {remote: gpu, remote_address: \"0000:41:00.0\"}}"),
              ElementsAre("0000:41:00.0", "0000:c1:00.0"));
}

TEST(LinkPeers, SwitchesOfTheBusAreNamedByTheirAddresses) {
  EXPECT_THAT(peers(3,
                    "link: {remote: switch, remote_address: \"0000:85:00.0\"}, "
                    "links: {2: {remote_address: \"0000:86:00.0\"}}"),
              ElementsAre("switch:0000:85:00.0", "switch:0000:86:00.0"));
}

TEST(LinkPeers, SwitchesBeyondTheBusAreOneDomain) {
  EXPECT_THAT(peers(18, "link: {remote: switch}"), ElementsAre("switch:"));
  EXPECT_THAT(peers(18, "link: {remote: switch, remote_address: \"ffffffff:ff:ff.0\"}"),
              ElementsAre("switch:"));
}

TEST(LinkPeers, AGpuWithoutAnAddressOrOfAnotherKindIsNoPeer) {
  EXPECT_THAT(peers(2, "link: {remote: gpu}"), IsEmpty());
  EXPECT_THAT(peers(2, "link: {remote: npu, remote_address: \"0000:85:00.0\"}"), IsEmpty());
  EXPECT_THAT(peers(2, "link: {remote: 255, remote_address: \"0000:85:00.0\"}"), IsEmpty());
}

// As an H100 without a board of NVSwitches answers, with driver 580.159: no links, and no other call.
TEST(LinkPeers, WithoutLinksNoLinkIsAskedFor) {
  const FakeDriver driver("devices: [{uuid: GPU-0, fields: {91: 0}}]");
  driver.set_time(0);
  const auto session = NvmlSession::shared(driver.library());
  std::optional<NvmlCaller> gpu = find_gpu(*session, "GPU-0");
  EXPECT_THAT(identify(*gpu, 0)->linked_to, IsEmpty());
  EXPECT_EQ(driver.calls("nvmlDeviceGetNvLinkRemoteDeviceType"), 0U);
}

TEST(LinkPeers, AnOldLibraryHasNone) {
  EXPECT_THAT(peers(2, "link: {remote: switch}", {"nvmlDeviceGetNvLinkRemoteDeviceType"}), IsEmpty());
}

// The GPU's place in its machine, pending repairs, and confidential computing.
std::string page_of(const std::string& keys, const std::vector<std::string_view>& starts,
                    const std::string& machine = "") {
  FakeDriver driver(machine + "\ndevices: [{uuid: GPU-0, temperature: {gpu: 50}, " + keys + "}]");
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  return gpu.lines(starts);
}

TEST(NvidiaPlatform, ThePlaceInTheRackIsAnInfoSeries) {
  EXPECT_EQ(page_of("platform: {chassis_serial: \"1821125190042\", slot: 11, tray: 8, host: 1, module: 3}",
                    {"gpu_platform"}),
            "gpu_platform_info{chassis_serial=\"1821125190042\",slot=\"11\",tray=\"8\",host=\"1\",module="
            "\"3\"} 1\n");
}

TEST(NvidiaPlatform, ASerialOfFullLengthHasNoEndAndOneOfOtherBytesIsLeftOut) {
  EXPECT_EQ(page_of("platform: {chassis_serial: \"1234567890ABCDEF\", slot: 1, tray: 0, host: 0, module: 0}",
                    {"gpu_platform"}),
            "gpu_platform_info{chassis_serial=\"1234567890ABCDEF\",slot=\"1\",tray=\"0\",host=\"0\",module="
            "\"0\"} 1\n");
  EXPECT_EQ(page_of("platform: {chassis_serial: \"12\\x01\", slot: 1, tray: 0, host: 0, module: 0}",
                    {"gpu_platform"}),
            "gpu_platform_info{slot=\"1\",tray=\"0\",host=\"0\",module=\"0\"} 1\n");
}

TEST(NvidiaPlatform, ABoardOfModulesNamesTheModuleAndACardDoesNot) {
  EXPECT_EQ(page_of("module_id: 6", {"gpu_platform"}), "gpu_platform_info{module=\"6\"} 1\n");
  EXPECT_EQ(page_of("module_id: 0", {"gpu_platform"}), "");
  EXPECT_EQ(page_of("name: X", {"gpu_platform"}), "");
}

// The inventory, the driver's settings, and sessions of the video engines. tests/nvidia_captures_test.py
// reads those of real cards.
TEST(NvidiaInventory, WhatTheDriverDoesNotReportIsNoLabel) {
  EXPECT_EQ(page_of("brand: 99, board_id: 0x8300, pdi: 0xd52bae2e458244e2, inforom_oem: {error: unknown}",
                    {"gpu_inventory"}),
            "gpu_inventory_info{brand=\"99\",board_id=\"0x8300\",pdi=\"0xd52bae2e458244e2\"} 1\n");
  EXPECT_EQ(page_of("name: X", {"gpu_inventory", "gpu_mode", "gpu_video", "gpu_protected", "gpu_edpp"}), "");
}

TEST(NvidiaInventory, TheDeviceAloneIsNamedAsLspciDoes) {
  EXPECT_EQ(
      page_of("pci: {bus_id: \"00000000:0C:00.0\", device_id: 0x1E8110DE, subsystem_id: 0x40051458, "
              "base_class: 3, sub_class: 0}, pcie: {gpu_max_generation: 4}",
              {"gpu_inventory"}, "system: {cuda_version: \"12.4\"}"),
      "gpu_inventory_info{pci_device_id=\"10de:1e81\",pci_subsystem_id=\"1458:4005\",pci_class=\"0300\","
      "pcie_max_generation=\"4\",cuda_version=\"12.4\"} 1\n");
}

TEST(NvidiaSettings, OneStateOfEachModeIsActive) {
  const std::string page = page_of(
      "modes: {accounting: enabled, addressing: ats, c2c: enabled}, capabilities: "
      "egm, virtualization: host_vgpu",
      {"gpu_mode"});
  std::string active;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(" 1")) active += line + "\n";
  }
  EXPECT_EQ(active,
            "gpu_mode{mode=\"accounting\",state=\"enabled\"} 1\n"
            "gpu_mode{mode=\"addressing\",state=\"ats\"} 1\n"
            "gpu_mode{mode=\"c2c\",state=\"enabled\"} 1\n"
            "gpu_mode{mode=\"egm\",state=\"enabled\"} 1\n"
            "gpu_mode{mode=\"virtualization\",state=\"host_vgpu\"} 1\n");
}

TEST(NvidiaSettings, AnotherCapabilityIsNoEgmAndAMultiplierOutOfRangeIsNone) {
  EXPECT_EQ(page_of("capabilities: 6, fields: {274: 100, 192: 650000}",
                    {"gpu_mode", "gpu_edpp", "gpu_power_limit"}),
            "gpu_edpp_multiplier_ratio 1\n"
            "gpu_mode{mode=\"egm\",state=\"disabled\"} 1\n"
            "gpu_mode{mode=\"egm\",state=\"enabled\"} 0\n"
            "gpu_power_limit_watts{limit=\"requested\"} 650\n");
  EXPECT_EQ(page_of("fields: {274: 4294967295}", {"gpu_edpp"}), "");
}

TEST(NvidiaRepair, PendingRepairsAndMemoryBeyondRepair) {
  EXPECT_EQ(page_of("repair: {channel: yes, tpc: no}, unrepairable_memory: yes, fields: {301: 4, 302: 1}",
                    {"gpu_repair", "gpu_memory_unrepairable", "gpu_remapped_rows_inactive"}),
            "gpu_memory_unrepairable 1\n"
            "gpu_remapped_rows_inactive{cause=\"corrected\"} 4\n"
            "gpu_remapped_rows_inactive{cause=\"uncorrected\"} 1\n"
            "gpu_repair_pending{part=\"channel\"} 1\n"
            "gpu_repair_pending{part=\"tpc\"} 0\n");
}

TEST(NvidiaRepair, AnOlderDriverHasNone) {
  EXPECT_EQ(page_of("name: X", {"gpu_repair", "gpu_memory_unrepairable", "gpu_remapped_rows"}), "");
}

constexpr auto kModes = "gpu_mode{mode=\"confidential";

std::string confidential(const std::string& settings) {
  return page_of("name: X", {kModes},
                 "system: {confidential: {environment: production, devtools: off, " + settings + "}}");
}

TEST(NvidiaConfidential, ProtectedPcieIsConfidentialWithoutTheFeature) {
  EXPECT_EQ(confidential("feature: disabled, multi_gpu: protected_pcie"),
            "gpu_mode{mode=\"confidential\",state=\"disabled\"} 0\n"
            "gpu_mode{mode=\"confidential\",state=\"enabled\"} 1\n"
            "gpu_mode{mode=\"confidential_multi_gpu\",state=\"none\"} 0\n"
            "gpu_mode{mode=\"confidential_multi_gpu\",state=\"nvle\"} 0\n"
            "gpu_mode{mode=\"confidential_multi_gpu\",state=\"protected_pcie\"} 1\n");
}

TEST(NvidiaConfidential, ADriverWithoutSettingsHasTheFeatureAlone) {
  EXPECT_EQ(confidential("feature: enabled"),
            "gpu_mode{mode=\"confidential\",state=\"disabled\"} 0\n"
            "gpu_mode{mode=\"confidential\",state=\"enabled\"} 1\n");
}

TEST(NvidiaRails, TheModulesEnergyIsTheDriversCounter) {
  EXPECT_EQ(page_of("fields: {191: {type: ulonglong, scopes: {1: 2000}}, 185: {scopes: {0: 1000, 1: 3000}}}",
                    {"gpu_rail", "gpu_power_rail"}),
            "gpu_power_rail_watts{rail=\"module\"} 3\n"
            "gpu_rail_energy_joules_total{rail=\"module\"} 2\n");
}

}  // namespace
}  // namespace gpumeter::nvidia
