#include "collectors/amd/collector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fakes/amd_card.hpp"
#include "tests/fakes/amd_card_test.hpp"
#include "tests/fakes/real_clock.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::amd {
namespace {

using std::chrono::seconds;

constexpr std::string_view kUevent = "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:73BF\n";

class CardTest : public OneCard {
 protected:
  void remove(const std::string& name) { tree_.remove("bus/pci/devices/0000:0c:00.0/" + name); }
};

TEST_F(CardTest, WithNothingHasNoSeries) { EXPECT_EQ(sampled(), ""); }

TEST_F(CardTest, UtilisationAndMemory) {
  write("gpu_busy_percent", "37\n");
  write("mem_busy_percent", "5\n");
  write("mem_info_vram_total", "1000\n");
  write("mem_info_vram_used", "250\n");
  write("mem_info_vis_vram_total", "500\n");
  write("mem_info_vis_vram_used", "125\n");
  write("mem_info_gtt_total", "2000\n");
  write("mem_info_gtt_used", "10\n");
  EXPECT_EQ(sampled(),
            "gpu_busy_seconds_total 0\n"
            "gpu_memory_controller_busy_seconds_total 0\n"
            "gpu_memory_controller_utilization_ratio 0.05\n"
            "gpu_memory_free_bytes{memory=\"gtt\"} 1990\n"
            "gpu_memory_free_bytes{memory=\"vram\"} 750\n"
            "gpu_memory_size_bytes{memory=\"gtt\"} 2000\n"
            "gpu_memory_size_bytes{memory=\"vram\"} 1000\n"
            "gpu_memory_used_bytes{memory=\"gtt\"} 10\n"
            "gpu_memory_used_bytes{memory=\"vram\"} 250\n"
            "gpu_utilization_max_ratio{window=\"1m\"} 0.37\n"
            "gpu_utilization_min_ratio{window=\"1m\"} 0.37\n"
            "gpu_utilization_ratio 0.37\n"
            "gpu_visible_memory_size_bytes 500\n"
            "gpu_visible_memory_used_bytes 125\n");
}

TEST_F(CardTest, BusyOverAHundredIsFullAndFarOverIsNothing) {
  write("gpu_busy_percent", "104\n");
  EXPECT_EQ(sampled({"gpu_utilization_m", "gpu_busy"}), "gpu_utilization_ratio 1\n");
  write("gpu_busy_percent", "65535\n");
  EXPECT_EQ(sampled(), "");
  EXPECT_EQ(page_->errors(ReadStatus::out_of_range), 1U);
}

TEST_F(CardTest, TemperaturesLimitsAndMargins) {
  write("hwmon/hwmon5/name", "amdgpu\n");
  write("hwmon/hwmon5/temp1_label", "edge\n");
  write("hwmon/hwmon5/temp1_input", "56000\n");
  write("hwmon/hwmon5/temp1_crit", "100000\n");
  write("hwmon/hwmon5/temp1_crit_hyst", "-273150\n");
  write("hwmon/hwmon5/temp1_emergency", "105000\n");
  write("hwmon/hwmon5/temp2_label", "junction\n");
  write("hwmon/hwmon5/temp2_input", "115000\n");
  write("hwmon/hwmon5/temp2_emergency", "110000\n");
  write("hwmon/hwmon5/temp3_label", "mem\n");
  write("hwmon/hwmon5/temp3_input", "0\n");
  EXPECT_EQ(sampled(),
            "gpu_temperature_celsius{sensor=\"core\"} 56\n"
            "gpu_temperature_celsius{sensor=\"hotspot\"} 115\n"
            "gpu_temperature_celsius{sensor=\"memory\"} 0\n"
            "gpu_temperature_limit_celsius{sensor=\"core\",limit=\"critical\"} 100\n"
            "gpu_temperature_limit_celsius{sensor=\"core\",limit=\"emergency\"} 105\n"
            "gpu_temperature_limit_celsius{sensor=\"hotspot\",limit=\"emergency\"} 110\n"
            "gpu_temperature_margin_celsius{sensor=\"core\"} 44\n"
            "gpu_temperature_margin_celsius{sensor=\"hotspot\"} -5\n");
}

TEST_F(CardTest, PowerIsTheAverageWhereThereIsOneAndCapsOfZeroAreCaps) {
  write("hwmon/hwmon5/name", "amdgpu\n");
  write("hwmon/hwmon5/power1_average", "3103000\n");
  write("hwmon/hwmon5/power1_input", "3142000\n");
  write("hwmon/hwmon5/power1_cap", "289000000\n");
  write("hwmon/hwmon5/power1_cap_default", "289000000\n");
  write("hwmon/hwmon5/power1_cap_min", "0\n");
  write("hwmon/hwmon5/power1_cap_max", "332000000\n");
  EXPECT_EQ(sampled({"gpu_power_m"}),
            "gpu_energy_joules_total 0\n"
            "gpu_power_instant_watts 3.142\n"
            "gpu_power_limit_watts{limit=\"default\"} 289\n"
            "gpu_power_limit_watts{limit=\"enforced\"} 289\n"
            "gpu_power_limit_watts{limit=\"max\"} 332\n"
            "gpu_power_limit_watts{limit=\"min\"} 0\n"
            "gpu_power_watts 3.103\n");
}

TEST_F(CardTest, PowerWithoutAnAverageIsTheInput) {
  write("hwmon/hwmon5/name", "amdgpu\n");
  write("hwmon/hwmon5/power1_average", "");  // as captured from a chip without an average
  write("hwmon/hwmon5/power1_input", "100000000\n");
  attach();
  page_->pass(Tier::fast);
  write("hwmon/hwmon5/power1_input", "300000000\n");
  page_->pass(Tier::fast, seconds(2));
  EXPECT_EQ(page_->text(),
            "gpu_energy_joules_total 400\n"  // between two readings: the trapezoid
            "gpu_power_instant_watts 300\n"
            "gpu_power_max_watts{window=\"1m\"} 300\n"
            "gpu_power_min_watts{window=\"1m\"} 100\n"
            "gpu_power_watts 300\n");
}

TEST_F(CardTest, ClocksFansVoltages) {
  write("hwmon/hwmon5/name", "amdgpu\n");
  write("hwmon/hwmon5/freq1_label", "sclk\n");
  write("hwmon/hwmon5/freq1_input", "0\n");
  write("hwmon/hwmon5/freq2_label", "mclk\n");
  write("hwmon/hwmon5/freq2_input", "96000000\n");
  write("hwmon/hwmon5/in0_label", "vddgfx\n");
  write("hwmon/hwmon5/in0_input", "0\n");
  write("hwmon/hwmon5/in1_label", "vddnb\n");
  write("hwmon/hwmon5/in1_input", "615\n");
  write("hwmon/hwmon5/fan1_input", "0\n");
  write("hwmon/hwmon5/pwm1", "127\n");
  write("hwmon/hwmon5/pwm1_max", "254\n");
  EXPECT_EQ(sampled(),
            "gpu_clock_hertz{clock=\"graphics\"} 0\n"
            "gpu_clock_hertz{clock=\"memory\"} 9.6e+07\n"
            "gpu_fan_speed_ratio{fan=\"0\"} 0.5\n"
            "gpu_fan_speed_rpm{fan=\"0\"} 0\n"
            "gpu_voltage_volts{rail=\"gfx\"} 0\n"
            "gpu_voltage_volts{rail=\"soc\"} 0.615\n");
}

TEST_F(CardTest, TheLinkIsTheSlots) {
  write("current_link_speed", "16.0 GT/s PCIe\n");
  write("current_link_width", "16\n");
  write("max_link_speed", "Unknown\n");
  write("max_link_width", "255\n");
  write("pcie_replay_count", "3\n");
  EXPECT_EQ(sampled(),
            "gpu_pcie_link_generation 4\n"
            "gpu_pcie_link_lanes 16\n"
            "gpu_pcie_replays_total 3\n");
}

TEST_F(CardTest, ThrottlingIsCountedByCauseAndByReason) {
  write("gpu_metrics", FakeBlob().set("indep_throttle_status", 0).bytes());
  attach();
  page_->pass(Tier::fast);
  constexpr std::uint64_t kPpt0AndHotspotAndReserved = 1ULL | 1ULL << 36 | 1ULL << 63;
  write("gpu_metrics", FakeBlob().set("indep_throttle_status", kPpt0AndHotspotAndReserved).bytes());
  page_->pass(Tier::fast, seconds(1));
  page_->pass(Tier::fast, seconds(2));
  EXPECT_EQ(page_->text({"gpu_throttle_reason"}),
            "gpu_throttle_seconds_total{cause=\"current\"} 0\n"
            "gpu_throttle_seconds_total{cause=\"hardware\"} 0\n"
            "gpu_throttle_seconds_total{cause=\"power\"} 2\n"
            "gpu_throttle_seconds_total{cause=\"reliability\"} 0\n"
            "gpu_throttle_seconds_total{cause=\"thermal\"} 2\n"
            "gpu_throttled{cause=\"current\"} 0\n"
            "gpu_throttled{cause=\"hardware\"} 0\n"
            "gpu_throttled{cause=\"power\"} 1\n"
            "gpu_throttled{cause=\"reliability\"} 0\n"
            "gpu_throttled{cause=\"thermal\"} 1\n");
  EXPECT_THAT(
      page_->text(),
      testing::HasSubstr("gpu_throttle_reason_seconds_total{cause=\"thermal\",reason=\"temp_hotspot\"} 2\n"));
}

TEST_F(CardTest, WithoutThrottleBitsThereIsNoThrottling) {
  write("gpu_metrics", FakeBlob().set("temperature_vrsoc", 49).bytes());  // all-ones: not supported
  EXPECT_EQ(sampled(), "gpu_temperature_celsius{sensor=\"vrsoc\"} 49\n");
  EXPECT_EQ(page_->errors(ReadStatus::failed), 0U);
}

TEST_F(CardTest, HwmonGoesFirstAndTheBlobFillsInFieldByField) {
  write("hwmon/hwmon5/name", "amdgpu\n");
  write("hwmon/hwmon5/temp1_label", "edge\n");
  write("hwmon/hwmon5/temp1_input", "56500\n");
  write("gpu_metrics", FakeBlob()
                           .set("temperature_edge", 57)
                           .set("temperature_hotspot", 59)
                           .set("temperature_mem", 0)
                           .bytes());
  EXPECT_EQ(sampled(),
            "gpu_temperature_celsius{sensor=\"core\"} 56.5\n"
            "gpu_temperature_celsius{sensor=\"hotspot\"} 59\n");
}

TEST_F(CardTest, AnUnknownBlobIsLeftAlone) {
  std::string unknown = FakeBlob().set("temperature_edge", 57).bytes();
  unknown[3] = 77;
  write("gpu_metrics", unknown);
  write("hwmon/hwmon5/name", "amdgpu\n");
  write("hwmon/hwmon5/temp1_label", "edge\n");
  write("hwmon/hwmon5/temp1_input", "56500\n");
  EXPECT_EQ(sampled(), "gpu_temperature_celsius{sensor=\"core\"} 56.5\n");
}

TEST_F(CardTest, OfASleepingCardOnlyWhatDoesNotWakeIsRead) {
  write("power/runtime_status", "suspended\n");
  write("gpu_busy_percent", "3\n");
  write("gpu_metrics", FakeBlob().set("temperature_edge", 57).bytes());
  write("mem_info_vram_total", "1000\n");
  write("mem_info_vram_used", "250\n");
  attach();
  EXPECT_EQ(page_->pass(Tier::normal), PassOutcome::asleep);
  EXPECT_EQ(page_->pass(Tier::fast), PassOutcome::asleep);
  const std::string asleep =
      "gpu_memory_free_bytes{memory=\"vram\"} 750\n"
      "gpu_memory_size_bytes{memory=\"vram\"} 1000\n"
      "gpu_memory_used_bytes{memory=\"vram\"} 250\n"
      "gpu_suspended 1\n";
  EXPECT_EQ(page_->text(), asleep);

  write("power/runtime_status", "active\n");
  EXPECT_EQ(page_->pass(Tier::fast), PassOutcome::complete);
  EXPECT_EQ(page_->text({"gpu_memory"}),
            "gpu_busy_seconds_total 0\n"
            "gpu_suspended 0\n"
            "gpu_temperature_celsius{sensor=\"core\"} 57\n"
            "gpu_utilization_max_ratio{window=\"1m\"} 0.03\n"
            "gpu_utilization_min_ratio{window=\"1m\"} 0.03\n"
            "gpu_utilization_ratio 0.03\n");
}

// Engines and clocks come from the firmware's table, or from one file each if the table lacks them.
TEST_F(CardTest, OneThatSleepsAtTheStartHasItsEnginesAndClocksOnceItWakes) {
  const std::string woken =
      "gpu_clock_hertz{clock=\"fabric\"} 1.9e+09\n"
      "gpu_clock_hertz{clock=\"video\"} 1.5e+09\n"
      "gpu_engine_utilization_ratio{engine=\"decode\"} 0.25\n";
  const std::vector<std::string_view> others = {"gpu_clock_max", "gpu_engine_busy", "gpu_suspended"};
  const auto seen_after_waking = [&] {
    write("power/runtime_status", "suspended\n");
    attach();
    page_->pass_all();
    EXPECT_EQ(page_->text({"gpu_suspended"}), "");
    EXPECT_FALSE(page_->has_more(page_->now()));
    write("power/runtime_status", "active\n");
    page_->pass(Tier::fast);
    EXPECT_TRUE(page_->has_more(page_->now()));
    page_->attach(info_);  // the lane then does the same
    page_->pass_all();
    EXPECT_FALSE(page_->has_more(page_->now()));
    return page_->text(others);
  };
  write("pp_dpm_fclk", "0: 500Mhz\n1: 1900Mhz *\n");  // unlike an APU's table, a card's has no fabric clock
  write("gpu_metrics", FakeBlob().set("average_mm_activity", 25).set("current_vclk0", 1500).bytes());
  EXPECT_EQ(seen_after_waking(), woken);
  remove("gpu_metrics");
  write("vcn_busy_percent", "25\n");
  write("pp_dpm_vclk", "0: 400Mhz\n1: 1500Mhz *\n");
  EXPECT_EQ(seen_after_waking(), woken);
}

TEST_F(CardTest, WhereThePowerIsNotManagedNothingIsSaidOfSleep) {
  write("power/runtime_status", "unsupported\n");
  EXPECT_EQ(sampled(), "");
}

TEST_F(CardTest, ThatIsNotThereCannotBeAttached) {
  attach();
  remove("");
  const std::unique_ptr<Device> device = collector_->device(info_);
  EXPECT_EQ(device->attach(info_).error().message(), info_.source + ": does not exist");
}

TEST_F(CardTest, AnOldOneOnRadeonGoesByPosition) {
  write("uevent", "DRIVER=radeon\nPCI_CLASS=30000\nPCI_ID=1002:6818\n");
  write("hwmon/hwmon3/name", "radeon\n");
  write("hwmon/hwmon3/temp1_input", "27000\n");
  write("hwmon/hwmon3/temp1_crit", "120000\n");
  write("hwmon/hwmon3/freq1_input", "300000000\n");
  EXPECT_EQ(sampled(),
            "gpu_clock_hertz{clock=\"graphics\"} 3e+08\n"
            "gpu_temperature_celsius{sensor=\"core\"} 27\n"
            "gpu_temperature_limit_celsius{sensor=\"core\",limit=\"critical\"} 120\n"
            "gpu_temperature_margin_celsius{sensor=\"core\"} 93\n");
}

Result<Discovery> discovered(const std::string& root) {
  return (*open_amd({root, "/proc", &kRealClock, {}}))->discover();
}

TEST(AmdDiscovery, ReadsAmdCardsAndSaysWhatWouldMakeOthersReadable) {
  const Tree tree = make_tree({
      {"bus/pci/devices/0000:03:00.0/uevent", "DRIVER=nvidia\nPCI_CLASS=30000\nPCI_ID=10DE:2204\n"},
      {"bus/pci/devices/0000:0c:00.0/uevent", kUevent},
      {"bus/pci/devices/0000:0d:00.0/uevent", "PCI_CLASS=120000\nPCI_ID=1002:74A1\n"},
      {"bus/pci/devices/0000:0e:00.0/uevent", "DRIVER=vfio-pci\nPCI_CLASS=30000\nPCI_ID=1002:73BF\n"},
  });
  const Discovery found = *discovered(tree.path());
  ASSERT_EQ(found.devices.size(), 1U);
  EXPECT_EQ(found.devices[0].pci_address, "0000:0c:00.0");
  EXPECT_EQ(
      found.notes,
      (std::vector<std::string>{
          "0000:0d:00.0: AMD GPU without a driver: load amdgpu (modprobe amdgpu)",
          "0000:0e:00.0: AMD GPU is bound to vfio-pci, so it is not read; amdgpu would make it readable"}));
}

TEST(AmdDiscovery, ACardThatRefusesItsIdentityIsNotReadUnderAnotherName) {
  const Tree tree(
      {{"bus/pci/devices/0000:0c:00.0/uevent", kUevent},
       {"bus/pci/devices/0000:0c:00.0/unique_id/is", "a folder: reading it is an error, for root too"}});
  const Discovery found = *(*open_amd({tree.path(), "/proc", &kRealClock, {}}))->discover();
  EXPECT_TRUE(found.devices.empty());
  EXPECT_THAT(found.notes,
              testing::ElementsAre("0000:0c:00.0: its unique_id cannot be read, as during a GPU reset; "
                                   "retried"));
}

// A card keeps its identity whatever hides it. Under its address it would be another GPU.
TEST(AmdDiscovery, ACardKeepsItsIdentityWhileItDoesNotSayIt) {
  const std::string card = "bus/pci/devices/0000:0c:00.0/";
  const Tree tree({{card + "uevent", kUevent},
                   {card + "unique_id", "946d7e1ef9b172dd\n"},
                   {card + "vbios_version", "113-A\n"}});
  const auto collector = *open_amd({tree.path(), "/proc", &kRealClock, {}});
  const std::vector<DeviceInfo> known = collector->discover()->devices;
  ASSERT_EQ(known.at(0).uuid, "GPU-946d7e1ef9b172dd");

  tree.write(card + "vbios_version", "");
  EXPECT_EQ(collector->discover()->devices, known);
  tree.write(card + "unique_id", "");
  EXPECT_EQ(collector->discover()->devices, known);
  EXPECT_TRUE(collector->discover()->is_incomplete);
  tree.remove(card + "unique_id");
  tree.write(card + "unique_id/is", "a folder");
  EXPECT_EQ(collector->discover()->devices, known);
  tree.write(card + "uevent", "");
  EXPECT_EQ(collector->discover()->devices, known);
  EXPECT_TRUE(collector->discover()->is_incomplete);

  tree.remove("bus/pci/devices/0000:0c:00.0");  // another card in its slot is another card
  EXPECT_TRUE(collector->discover()->devices.empty());
  tree.write(card + "uevent", kUevent);
  EXPECT_EQ(collector->discover()->devices.at(0).uuid, "0000:0c:00.0");
}

TEST(AmdDiscovery, AMachineWithoutAGpuIsNoErrorButOneWithoutSysfsIs) {
  const Tree tree = make_tree({});
  EXPECT_TRUE(discovered(tree.path())->devices.empty());
  EXPECT_EQ(discovered(tree / "sys").error().message(), tree / "sys" + ": does not exist; is sysfs mounted?");
}

}  // namespace
namespace {

constexpr std::string_view kIds =
    "# List of AMDGPU IDs\n"
    "#\n"
    "1.0.0\n"
    "731F,\tC0,\tAMD Radeon RX 5700 XT 50th Anniversary\n"
    "731F,\tC1,\tAMD Radeon RX 5700 XT\n"
    "73BF,\tC0,\tAMD Radeon RX 6900 XT\n"
    "15BF,\t00,\tAMD 15BF Graphics, one name\n"
    "15BF,\t01,\tAMD 15BF Graphics, one name\n";

TEST(MarketingName, GoesByDeviceAndRevision) {
  const Tree tree = make_tree({{"amdgpu.ids", kIds}});
  EXPECT_EQ(marketing_name(tree / "amdgpu.ids", 0x73bf, 0xc0), "AMD Radeon RX 6900 XT");
  EXPECT_EQ(marketing_name(tree / "amdgpu.ids", 0x731f, 0xc1), "AMD Radeon RX 5700 XT");
  EXPECT_EQ(marketing_name(tree / "amdgpu.ids", 0x73bf, 0xc1), "");
  EXPECT_EQ(marketing_name(tree / "amdgpu.ids", 0x1234, 0xc0), "");
  EXPECT_EQ(marketing_name(tree / "nothing", 0x73bf, 0xc0), "");
}

TEST(MarketingName, WithoutARevisionIsOneThatAllShareOrNone) {
  const Tree tree = make_tree({{"amdgpu.ids", kIds}});
  EXPECT_EQ(marketing_name(tree / "amdgpu.ids", 0x15bf, std::nullopt), "AMD 15BF Graphics, one name");
  EXPECT_EQ(marketing_name(tree / "amdgpu.ids", 0x731f, std::nullopt), "");
}

/// The card at 0000:0c:00.0 in the tree.
pci::Function card(const Tree& tree) { return pci::read_function(tree / "0000:0c:00.0").value(); }

DeviceInfo identified(const Tree& tree) {
  return identify(card(tree),
                  {tree.path(), tree / "amdgpu.ids", drm::NodeMap(tree.path()), kfd_nodes(tree.path())});
}

TEST(Identify, ReadsWhatThereIs) {
  const Tree tree = make_tree({{"amdgpu.ids", kIds},
                               {"module/amdgpu/version", "6.12.12\n"},
                               {"0000:0c:00.0/uevent", "DRIVER=amdgpu\nPCI_ID=1002:73BF\n"},
                               {"0000:0c:00.0/revision", "0xc0\n"},
                               {"0000:0c:00.0/unique_id", "946d7e1ef9b172dd\n"},
                               {"0000:0c:00.0/serial_number", "PCB123\n"},
                               {"0000:0c:00.0/vbios_version", "113-D4121EXT-CO1\n"},
                               {"0000:0c:00.0/fw_version/smc_fw_version", "0x003a5800\n"},
                               {"0000:0c:00.0/numa_node", "1\n"},
                               {"class/kfd/kfd/topology/nodes/1/properties",
                                "simd_count 160\nsimd_per_cu 2\ngfx_target_version 100300\n"
                                "location_id 3072\ndomain 0\n"},
                               {"0000:0c:00.0/drm/card1/dev", "226:1\n"},
                               {"0000:0c:00.0/drm/renderD129/dev", "226:129\n"}});
  DeviceInfo expected;
  expected.uuid = "GPU-946d7e1ef9b172dd";
  expected.vendor = "amd";
  expected.model = "AMD Radeon RX 6900 XT";
  expected.pci_address = "0000:0c:00.0";
  expected.serial = "PCB123";
  expected.driver = "amdgpu";
  expected.driver_version = "6.12.12";
  expected.vbios_version = "113-D4121EXT-CO1";
  expected.firmware_version = "58.88.0";
  expected.architecture = "gfx1030";
  expected.compute_units = 80;
  expected.minor = "129";
  expected.numa_node = 1;
  expected.source = tree / "0000:0c:00.0";
  EXPECT_EQ(identified(tree), expected);
}

TEST(Identify, LeavesOutWhatThereIsNot) {
  const Tree tree = make_tree({{"0000:0c:00.0/uevent", "DRIVER=radeon\nPCI_ID=1002:6818\n"},
                               {"0000:0c:00.0/numa_node", "-1\n"},
                               {"0000:0c:00.0/product_name", ""}});
  DeviceInfo expected;
  expected.uuid = "0000:0c:00.0";
  expected.vendor = "amd";
  expected.model = "AMD 6818";
  expected.pci_address = "0000:0c:00.0";
  expected.driver = "radeon";
  expected.source = tree / "0000:0c:00.0";
  EXPECT_EQ(identified(tree), expected);
}

TEST(Identify, TakesTheBoardsOwnNameWhereTheListHasNone) {
  const Tree tree = make_tree(
      {{"0000:0c:00.0/uevent", "PCI_ID=1002:73BF\n"}, {"0000:0c:00.0/product_name", "AMD Instinct MI999\n"}});
  EXPECT_EQ(identified(tree).model, "AMD Instinct MI999");
}

TEST(SmcVersion, IsAsTheDriversLogHasIt) {
  EXPECT_EQ(smc_version("0x004c6000"), "76.96.0");
  EXPECT_EQ(smc_version("0x0a3a5801"), "58.88.1");
  for (const char* const none : {"", "0x00000000", "58.88.0", "0x1ffffffff"})
    EXPECT_EQ(smc_version(none), "");
}

TEST(UuidOf, AUniqueIdOfNothingIsNone) {
  for (const char* const id : {"", "\n", "0\n", "0000000000000000\n"}) {
    const Tree tree = make_tree({{"0000:0c:00.0/uevent", ""}, {"0000:0c:00.0/unique_id", id}});
    EXPECT_EQ(uuid_of(card(tree)), "0000:0c:00.0");
  }
}

TEST(SeparateTwins, TheFirstKeepsTheUuid) {
  std::vector<DeviceInfo> devices(3);
  for (DeviceInfo& device : devices) device.uuid = "GPU-1";
  devices[0].pci_address = "0000:03:00.0";
  devices[1].pci_address = "0000:04:00.0";
  devices[2].uuid = devices[2].pci_address = "0000:05:00.0";
  std::vector<std::string> notes;
  separate_twins(devices, notes);
  EXPECT_EQ(devices[0].uuid, "GPU-1");
  EXPECT_EQ(devices[1].uuid, "0000:04:00.0");
  EXPECT_EQ(devices[2].uuid, "0000:05:00.0");
  EXPECT_EQ(notes, (std::vector<std::string>{"0000:04:00.0: another card has the unique_id of GPU-1, so this "
                                             "one is identified by its PCI address"}));
}

}  // namespace
}  // namespace gpumeter::amd
