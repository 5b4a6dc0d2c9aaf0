#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "collectors/drm/collector.hpp"
#include "tests/fakes/real_clock.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::drm_devices {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class DrmDiscoveryTest : public testing::Test {
 protected:
  /// A device with a driver, and its node of a class.
  void add(const std::string& folder, const std::string& driver, const std::string& node) {
    tree_.write("devices/" + folder + "/uevent", "DRIVER=" + driver + "\n");
    const std::filesystem::path device = tree_ / ("devices/" + folder);
    const std::filesystem::path entry = tree_ / ("class/" + node);
    std::filesystem::create_directories(entry);
    std::filesystem::create_directory_symlink(device, entry / "device");
  }

  std::vector<std::string> found(unsigned nvml = 0) {
    DrmDiscovery discovery(
        tree_.path(), [nvml] { return nvml; }, kRealClock, nullptr);
    std::vector<std::string> uuids;
    for (const DeviceInfo& info : discovery.find().devices) uuids.push_back(info.uuid);
    return uuids;
  }

  Tree tree_ = make_tree({});
};

TEST_F(DrmDiscoveryTest, DriversOfOthersAndDisplaysAreLeftOut) {
  for (const char* const driver :
       {"nvidia", "amdgpu", "radeon", "i915", "xe", "ast", "mgag200", "simpledrm", "vkms"})
    add(std::string("pci/") + driver, driver, std::string("drm/card") + driver);
  add("pci/virtual", "virtio_gpu", "drm/card90");
  tree_.write("devices/pci/virtual/drm/renderD128/dev", "226:128\n");
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(DrmDiscoveryTest, AnUnknownDriverWithARenderNodeIsAGpu) {
  add("platform/1.gpu", "powervr", "drm/card0");
  EXPECT_THAT(found(), IsEmpty());
  tree_.write("devices/platform/1.gpu/drm/renderD128/dev", "226:128\n");
  EXPECT_THAT(found(), ElementsAre("1.gpu"));
}

TEST_F(DrmDiscoveryTest, ADeviceWithSeveralNodesIsOne) {
  add("platform/1002000000.v3d", "v3d", "drm/card0");
  add("platform/fb000000.gpu", "panthor", "drm/card1");
  add("pci0000:00/0000:00:0b.0", "intel_vpu", "accel/accel0");
  EXPECT_THAT(found(), ElementsAre("0000:00:0b.0", "1002000000.v3d", "fb000000.gpu"));
}

TEST_F(DrmDiscoveryTest, TheGpuOfAJetsonIsLeftToNvmlIfNvmlListsIt) {
  add("platform/17000000.gpu", "gk20a", "devfreq/17000000.gpu");
  tree_.write("devices/platform/17000000.gpu/load", "0\n");
  EXPECT_THAT(found(0), ElementsAre("17000000.gpu"));
  EXPECT_THAT(found(1), IsEmpty());
  tree_.write("bus/pci/drivers/nvidia/0005:01:00.0/uevent", "");  // a card beside it, which NVML lists
  EXPECT_THAT(found(1), ElementsAre("17000000.gpu"));
  EXPECT_THAT(found(2), IsEmpty());
}

// The devfreq device of a Thor belongs to the PCI function that NVML reads.
TEST_F(DrmDiscoveryTest, TheGpuOfAThorIsNotThereTwice) {
  add("pci0000:00/0000:01:00.0", "nvidia", "devfreq/gpu-gpc-0");
  tree_.write("devices/pci0000:00/0000:01:00.0/load", "0\n");
  EXPECT_THAT(found(), IsEmpty());
}

}  // namespace
}  // namespace gpumeter::drm_devices
