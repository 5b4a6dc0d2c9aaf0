#include <gtest/gtest.h>

#include "tests/fakes/nvidia_gpu.hpp"

// The GPU's place in its machine, pending repairs, and confidential computing.

namespace gpumeter::nvidia {
namespace {

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
