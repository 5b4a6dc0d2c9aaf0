#include "collectors/attribution/kubelet/device_ids.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter::kubelet {
namespace {

using workloads::DeviceSelector;
using By = DeviceSelector::By;
using Selector = std::optional<DeviceSelector>;

Selector of_plugin(const std::string& resource, const std::string& id) {
  return selector_of({resource, id}, [](std::string_view card) -> std::optional<std::string> {
    return card == "card1" ? std::optional<std::string>("0000:03:00.0") : std::nullopt;
  });
}
Selector of_claim(const std::string& driver, const std::string& id) {
  return selector_of({"", id, driver}, [](std::string_view) { return std::nullopt; });
}
Selector nvidia(By by, const std::string& id) { return DeviceSelector{by, id, "nvidia"}; }

TEST(DeviceIdsTest, NvidiasPluginGivesUuidsReplicasAndIndices) {
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "GPU-5a"), nvidia(By::uuid, "GPU-5a"));
  EXPECT_EQ(of_plugin("nvidia.com/gpu.shared", "GPU-5a::3"), nvidia(By::uuid, "GPU-5a"));
  EXPECT_EQ(of_plugin("nvidia.com/mig-1g.5gb", "MIG-77::7"), nvidia(By::uuid, "MIG-77"));
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "2"), nvidia(By::position, "2"));
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "eth0"), std::nullopt);
}

TEST(DeviceIdsTest, GkesPluginGivesMinorsAndGpuInstances) {
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "nvidia0"), nvidia(By::minor, "0"));
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "nvidia3/vgpu1"), nvidia(By::minor, "3"));
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "nvidia0/gi3/vgpu0"), nvidia(By::minor, "0/gi3"));
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "nvidia0/gi13"), nvidia(By::minor, "0/gi13"));
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "nvidia0/gix"), nvidia(By::minor, "0"));
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "nvidia"), std::nullopt);
}

TEST(DeviceIdsTest, NvidiasDraDriverGivesMinorsAndMigPlaces) {
  EXPECT_EQ(of_claim("gpu.nvidia.com", "gpu-1"), nvidia(By::minor, "1"));
  EXPECT_EQ(of_claim("gpu.nvidia.com", "gpu-1-mig-2g47gb-14-0"), nvidia(By::minor, "1/mig-2g47gb-14-0"));
  EXPECT_EQ(of_claim("gpu.nvidia.com", "gpu-3-mig-1g5gb-me-19-4"), nvidia(By::minor, "3/mig-1g5gb-me-19-4"));
  EXPECT_EQ(of_claim("gpu.nvidia.com", "gpu-vfio-2"), std::nullopt);
  EXPECT_EQ(of_claim("gpu.nvidia.com", "gpu-1x"), std::nullopt);
  EXPECT_EQ(of_claim("nic.example.com", "gpu-1"), std::nullopt);
}

TEST(DeviceIdsTest, AmdsPluginGivesPciAddresses) {
  EXPECT_EQ(of_plugin("amd.com/gpu", "0000:1A:00.0"),
            (DeviceSelector{By::pci_address, "0000:1a:00.0", "amd"}));
  EXPECT_EQ(of_plugin("amd.com/cpx_nps1", "amdgpu_xcp_30"), std::nullopt);
}

TEST(DeviceIdsTest, IntelsPluginGivesCardsAndMonitoringIsNoUse) {
  EXPECT_EQ(of_plugin("gpu.intel.com/xe", "card1-4"),
            (DeviceSelector{By::pci_address, "0000:03:00.0", "intel"}));
  EXPECT_EQ(of_plugin("gpu.intel.com/i915", "card9-0"), std::nullopt);
  EXPECT_EQ(of_plugin("gpu.intel.com/i915_monitoring", "card1-0"), std::nullopt);
}

TEST(DeviceIdsTest, ACardsAddressIsTheEndOfItsLink) {
  const Tree sysfs = make_tree({{"class/drm/card1/device", "-> ../../../0000:03:00.0"}});
  const CardAddress address_of = card_addresses(sysfs.path());
  EXPECT_EQ(address_of("card1"), "0000:03:00.0");
  EXPECT_EQ(address_of("card2"), std::nullopt);
}

}  // namespace
}  // namespace gpumeter::kubelet
