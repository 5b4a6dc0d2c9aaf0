#include "collectors/drm/collector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "collectors/api/process_list.hpp"
#include "tests/fakes/fake_drm_users.hpp"
#include "tests/fakes/real_clock.hpp"
#include "tests/fakes/sampled_page.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::drm_devices {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A machine with one device.
class DrmDeviceTest : public testing::Test {
 protected:
  void device(const std::string& folder, const std::string& driver, const std::string& node) {
    folder_ = "devices/" + folder + "/";
    write("uevent", "DRIVER=" + driver + "\n");
    const std::filesystem::path entry = tree_ / ("class/" + node);
    std::filesystem::create_directories(entry);
    std::filesystem::create_directory_symlink(tree_ / folder_, entry / "device");
  }
  void write(const std::string& name, std::string_view content) { tree_.write(folder_ + name, content); }

  std::unique_ptr<Device> open() {
    collector_ = *open_drm({tree_.path(), tree_.path(), &kRealClock, {{"tegra", {"on"}}}, nullptr, users_});
    const Discovery found = *collector_->discover();
    info_ = found.devices.at(0);
    return collector_->device(info_);
  }
  void attach() {
    page_.emplace(open());
    page_->attach(info_);
  }
  /// The clients of the platform device fb000000.gpu, and the pass that follows their scan.
  void scan(int at, std::initializer_list<std::pair<EngineClass, double>> busy,
            std::vector<DrmProcess> processes) {
    users_->scan("fb000000.gpu", {seconds(at), seconds(at), engine_seconds(busy), std::move(processes), 0});
    page_->pass(Tier::normal);
  }
  std::vector<DeviceProcess> listed() {
    std::vector<DeviceProcess> list;
    EXPECT_EQ(page_->processes(list), ReadStatus::ok);
    return list;
  }
  std::string text() const { return page_->text({"gpu_utilization_m"}); }

  const Tree tree_{{}};
  std::string folder_;
  std::shared_ptr<FakeDrmUsers> users_ = std::make_shared<FakeDrmUsers>();
  std::unique_ptr<Collector> collector_;
  DeviceInfo info_;
  std::optional<SampledPage> page_;
};

TEST_F(DrmDeviceTest, TheBusiestQueueOfV3dIsItsUtilisation) {
  device("platform/1.v3d", "v3d", "drm/card0");
  write("gpu_stats",
        "queue timestamp jobs runtime\nbin 10000000000 1 1000000000\nrender 10000000000 1 5000000000\n");
  attach();
  page_->pass(Tier::fast);
  EXPECT_EQ(text(),
            "gpu_busy_seconds_total 0\n"
            "gpu_engine_busy_seconds_total{engine=\"bin\"} 1\n"
            "gpu_engine_busy_seconds_total{engine=\"graphics\"} 5\n");
  write("gpu_stats",
        "queue timestamp jobs runtime\nbin 12000000000 1 1500000000\nrender 12000000000 1 5200000000\n");
  page_->pass(Tier::fast, seconds(2));
  EXPECT_EQ(text(),
            "gpu_busy_seconds_total 0.5\n"
            "gpu_engine_busy_seconds_total{engine=\"bin\"} 1.5\n"
            "gpu_engine_busy_seconds_total{engine=\"graphics\"} 5.2\n"
            "gpu_utilization_ratio 0.25\n");
  write("gpu_stats", "nonsense\n");
  page_->pass(Tier::fast, seconds(1));
  EXPECT_THAT(text(), Not(HasSubstr("gpu_utilization_ratio")));
  EXPECT_GT(page_->errors(ReadStatus::failed), 0U);
}

TEST_F(DrmDeviceTest, TheBusyTimeOfAnNpuIsACounterAndAShare) {
  device("pci0000:00/0000:00:0b.0", "intel_vpu", "accel/accel0");
  write("npu_busy_time_us", "1000000\n");
  attach();
  page_->pass(Tier::fast);
  write("npu_busy_time_us", "1500000\n");
  page_->pass(Tier::fast, seconds(1));
  EXPECT_EQ(text(), "gpu_busy_seconds_total 1.5\ngpu_utilization_ratio 0.5\n");
  EXPECT_EQ(page_->source_of("busy"), "hardware");
}

TEST_F(DrmDeviceTest, ASleepingCardIsNotRead) {
  device("pci0000:00/0000:01:00.0", "nouveau", "drm/card0");
  write("power/runtime_status", "suspended\n");
  write("hwmon/hwmon3/name", "nouveau\n");
  write("hwmon/hwmon3/temp1_input", "50000\n");
  attach();
  EXPECT_EQ(page_->pass(Tier::fast), PassOutcome::asleep);
  EXPECT_EQ(text(), "gpu_suspended 1\n");
  write("power/runtime_status", "active\n");
  EXPECT_EQ(page_->pass(Tier::fast), PassOutcome::complete);
  EXPECT_EQ(text(), "gpu_suspended 0\ngpu_temperature_celsius{sensor=\"core\"} 50\n");
}

TEST_F(DrmDeviceTest, TheLimitsOfASleepingCardAreReadWhenItIsAwake) {
  device("pci0000:00/0000:01:00.0", "nouveau", "drm/card0");
  write("power/runtime_status", "suspended\n");
  write("hwmon/hwmon3/name", "nouveau\n");
  write("hwmon/hwmon3/temp1_input", "50000\n");
  write("hwmon/hwmon3/temp1_crit", "\n");  // as while it sleeps
  attach();
  write("hwmon/hwmon3/temp1_crit", "95000\n");
  write("power/runtime_status", "active\n");
  page_->pass(Tier::fast);
  EXPECT_EQ(text(),
            "gpu_suspended 0\n"
            "gpu_temperature_celsius{sensor=\"core\"} 50\n"
            "gpu_temperature_margin_celsius{sensor=\"core\"} 45\n");
}

TEST_F(DrmDeviceTest, TheCriticalTripPointOfAZoneIsALimit) {
  const std::string zone = "class/thermal/thermal_zone3/";
  tree_.write(zone + "type", "gpu-thermal\n");
  tree_.write(zone + "temp", "61000\n");
  tree_.write(zone + "trip_point_0_type", "passive\n");
  tree_.write(zone + "trip_point_0_temp", "75000\n");
  tree_.write(zone + "trip_point_1_type", "critical\n");
  tree_.write(zone + "trip_point_1_temp", "115000\n");
  device("platform/fb000000.gpu", "panthor", "drm/card0");
  attach();
  page_->pass_all();
  EXPECT_EQ(text(),
            "gpu_temperature_celsius{sensor=\"core\"} 61\n"
            "gpu_temperature_limit_celsius{sensor=\"core\",limit=\"critical\"} 115\n"
            "gpu_temperature_margin_celsius{sensor=\"core\"} 54\n");
}

TEST_F(DrmDeviceTest, AZoneWithoutACriticalTripPointHasNoLimit) {
  tree_.write("class/thermal/thermal_zone3/type", "gpu-thermal\n");
  tree_.write("class/thermal/thermal_zone3/temp", "61000\n");
  tree_.write("class/thermal/thermal_zone3/trip_point_0_type", "active\n");
  tree_.write("class/thermal/thermal_zone3/trip_point_0_temp", "70000\n");
  device("platform/fb000000.gpu", "panthor", "drm/card0");
  attach();
  page_->pass_all();
  EXPECT_EQ(text(), "gpu_temperature_celsius{sensor=\"core\"} 61\n");
}

TEST_F(DrmDeviceTest, ALinkThatIsDownHasNoValue) {
  device("pci0000:00/0000:01:00.0", "qaic", "accel/accel0");
  write("current_link_speed", "16.0 GT/s PCIe\n");
  write("current_link_width", "8\n");
  attach();
  page_->pass_all();
  EXPECT_EQ(text(), "gpu_pcie_link_generation 4\ngpu_pcie_link_lanes 8\n");
  write("current_link_speed", "Unknown\n");
  write("current_link_width", "0\n");
  page_->pass(Tier::slow);
  EXPECT_EQ(text(), "");
  EXPECT_EQ(page_->errors(ReadStatus::out_of_range), 0U);
}

TEST_F(DrmDeviceTest, ClientsGiveBusyTimeAndProcesses) {
  device("platform/fb000000.gpu", "panthor", "drm/card0");
  attach();
  EXPECT_EQ(users_->watches["fb000000.gpu"], 1);
  scan(10, {{EngineClass::graphics, 3}}, {{7, 70, {}, std::nullopt, 4096.0}});
  EXPECT_EQ(text(), "gpu_busy_seconds_total 0\ngpu_engine_busy_seconds_total{engine=\"graphics\"} 3\n");
  EXPECT_THAT(listed(), ElementsAre(DeviceProcess{7, 4096.0, std::nullopt}));
  scan(20, {{EngineClass::graphics, 5}, {EngineClass::compute, 4}},
       {{8, 80, engine_seconds({{EngineClass::compute, 4}}), 100.0, 4096.0}});
  EXPECT_EQ(text(),
            "gpu_busy_seconds_total 4\n"
            "gpu_engine_busy_seconds_total{engine=\"compute\"} 4\n"
            "gpu_engine_busy_seconds_total{engine=\"graphics\"} 5\n"
            "gpu_utilization_ratio 0.4\n");
  EXPECT_EQ(page_->source_of("busy"), "fdinfo");
  EXPECT_THAT(listed(), ElementsAre(DeviceProcess{8, 100.0, 4.0}));
  page_->release();
  EXPECT_EQ(users_->watches["fb000000.gpu"], 0);
}

TEST_F(DrmDeviceTest, ClientsWithoutEnginesGiveNoBusyTime) {
  device("platform/fb000000.gpu", "etnaviv", "drm/card0");
  attach();
  scan(10, {}, {{7, 70, {}, std::nullopt, 4096.0}});
  scan(20, {}, {{7, 70, {}, std::nullopt, 4096.0}});
  EXPECT_EQ(text(), "");
  EXPECT_EQ(page_->source_of("busy"), "");
  EXPECT_THAT(listed(), ElementsAre(DeviceProcess{7, 4096.0, std::nullopt}));
}

TEST_F(DrmDeviceTest, WithoutAScannerNoProcessIsListed) {
  users_ = nullptr;
  device("platform/fb000000.gpu", "panthor", "drm/card0");
  EXPECT_EQ(dynamic_cast<ListsProcesses*>(open().get()), nullptr);
}

}  // namespace
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
