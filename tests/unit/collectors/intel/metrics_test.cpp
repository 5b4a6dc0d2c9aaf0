#include <gtest/gtest.h>

#include <string>

#include "collectors/intel/card.hpp"
#include "tests/fakes/intel_card_test.hpp"

namespace gpumeter::intel {
namespace {

using std::chrono::milliseconds;

class XeCard : public OneIntelCard {
 protected:
  XeCard() : OneIntelCard("xe") { write("hwmon/hwmon4/name", "xe\n"); }
  void sensor(const std::string& name, std::string_view content) { write("hwmon/hwmon4/" + name, content); }
};

class I915Card : public OneIntelCard {
 protected:
  I915Card() : OneIntelCard("i915") {}
};

TEST_F(XeCard, WithNothingHasNoSeries) { EXPECT_EQ(sampled(), ""); }

TEST_F(XeCard, SensorsGoByLabel) {
  sensor("temp2_label", "pkg\n");
  sensor("temp2_input", "56000\n");
  sensor("temp2_crit", "110000\n");
  sensor("temp2_max", "60000\n");
  sensor("temp3_label", "vram\n");
  sensor("temp3_input", "54000\n");
  sensor("temp4_label", "mctrl\n");
  sensor("temp4_input", "55000\n");
  sensor("temp5_label", "pcie\n");
  sensor("temp5_input", "58000\n");
  sensor("temp6_label", "vram_ch_0\n");
  sensor("temp6_input", "52000\n");
  sensor("temp21_label", "vram_ch_15\n");
  sensor("temp21_input", "53000\n");
  sensor("in1_label", "pkg\n");
  sensor("in1_input", "605\n");
  EXPECT_EQ(sampled(),
            "gpu_temperature_celsius{sensor=\"core\"} 56\n"
            "gpu_temperature_celsius{sensor=\"mctrl\"} 55\n"
            "gpu_temperature_celsius{sensor=\"memory\"} 54\n"
            "gpu_temperature_celsius{sensor=\"pcie\"} 58\n"
            "gpu_temperature_celsius{sensor=\"vram_ch_0\"} 52\n"
            "gpu_temperature_celsius{sensor=\"vram_ch_15\"} 53\n"
            "gpu_temperature_limit_celsius{sensor=\"core\",limit=\"critical\"} 110\n"
            "gpu_temperature_limit_celsius{sensor=\"core\",limit=\"max\"} 60\n"
            "gpu_temperature_margin_celsius{sensor=\"core\"} 54\n"
            "gpu_voltage_volts{rail=\"gfx\"} 0.605\n");
}

TEST_F(XeCard, ACardWhoseFirmwareCountsNoEnergyIsMeteredByItsPackage) {
  sensor("energy1_label", "card\n");
  sensor("energy1_input", "0\n");
  sensor("energy2_label", "pkg\n");
  sensor("energy2_input", "29523753173\n");
  attach();
  page_->pass_all();
  EXPECT_EQ(page_->text(),
            "gpu_energy_joules_total 29523.753173\n"
            "gpu_rail_energy_joules_total{rail=\"package\"} 29523.753173\n");
  sensor("energy2_input", "29553753173\n");
  page_->pass(Tier::fast, milliseconds(1000));  // 4 s after the first fast pass
  EXPECT_EQ(page_->text(),
            "gpu_energy_joules_total 29553.753173\n"
            "gpu_power_max_watts{window=\"1m\"} 7.5\n"
            "gpu_power_min_watts{window=\"1m\"} 7.5\n"
            "gpu_power_rail_watts{rail=\"package\"} 7.5\n"
            "gpu_power_watts 7.5\n"
            "gpu_rail_energy_joules_total{rail=\"package\"} 29553.753173\n");
}

TEST_F(XeCard, CardAndPackageAreRailsAndTheCardIsTheDevice) {
  sensor("energy1_label", "card\n");
  sensor("energy1_input", "9000000\n");
  sensor("energy2_label", "pkg\n");
  sensor("energy2_input", "6000000\n");
  EXPECT_EQ(sampled(),
            "gpu_energy_joules_total 9\n"
            "gpu_rail_energy_joules_total{rail=\"card\"} 9\n"
            "gpu_rail_energy_joules_total{rail=\"package\"} 6\n");
}

TEST_F(XeCard, AnEnergyThatFallsGivesNoPower) {
  sensor("energy2_label", "pkg\n");
  sensor("energy2_input", "5000000\n");
  attach();
  page_->pass(Tier::fast);
  sensor("energy2_input", "1000000\n");  // the driver was loaded again
  page_->pass(Tier::fast, milliseconds(1000));
  EXPECT_EQ(page_->text(),
            "gpu_energy_joules_total 6\n"
            "gpu_rail_energy_joules_total{rail=\"package\"} 6\n");
}

TEST_F(XeCard, PowerLimitsOfZeroAreOff) {
  sensor("power1_label", "card\n");
  sensor("power1_max", "0\n");
  sensor("power1_rated_max", "0\n");
  sensor("power1_cap", "190000000\n");
  sensor("power1_crit", "380000000\n");
  sensor("power2_label", "pkg\n");
  EXPECT_EQ(sampled(),
            "gpu_power_limit_watts{limit=\"enforced\"} 190\n"
            "gpu_power_limit_watts{limit=\"max\"} 380\n");
}

TEST_F(XeCard, FansAreThoseWithAFileAndMayStandStill) {
  sensor("fan1_input", "945\n");
  sensor("fan2_input", "0\n");
  sensor("fan1_max", "1890\n");
  EXPECT_EQ(sampled(),
            "gpu_fan_speed_ratio{fan=\"0\"} 0.5\n"
            "gpu_fan_speed_rpm{fan=\"0\"} 945\n"
            "gpu_fan_speed_rpm{fan=\"1\"} 0\n");
}

TEST_F(XeCard, ClocksOfSeveralTilesAndAMediaGt) {
  write("tile0/gt0/gtidle/name", "gt0-rc\n");
  write("tile0/gt0/freq0/act_freq", "1400\n");
  write("tile0/gt0/freq0/rp0_freq", "1600\n");
  write("tile0/gt0/freq0/rpa_freq", "627200\n");  // a bug of the driver: not a clock
  write("tile0/gt1/gtidle/name", "gt1-mc\n");
  write("tile0/gt1/freq0/act_freq", "0\n");
  write("tile0/gt1/freq0/rp0_freq", "1500\n");
  write("tile1/gt2/gtidle/name", "gt2-rc\n");
  write("tile1/gt2/freq0/act_freq", "1550\n");
  write("tile1/gt2/freq0/max_freq", "1600\n");
  write("tile0/gt0/gtidle/idle_residency_ms", "2547784\n");
  write("tile0/gt1/gtidle/idle_residency_ms", "1500\n");
  EXPECT_EQ(sampled(),
            "gpu_clock_hertz{clock=\"graphics\"} 1.55e+09\n"
            "gpu_clock_hertz{clock=\"video\"} 0\n"
            "gpu_clock_max_hertz{clock=\"graphics\"} 1.6e+09\n"
            "gpu_clock_max_hertz{clock=\"video\"} 1.5e+09\n"
            "gpu_gt_idle_seconds_total{gt=\"0\"} 2547.784\n"
            "gpu_gt_idle_seconds_total{gt=\"1\"} 1.5\n");
}

TEST_F(XeCard, AClockThatNoChipReachesIsAFailedRead) {
  write("tile0/gt0/freq0/act_freq", "627200\n");
  EXPECT_EQ(sampled(), "");
  EXPECT_EQ(page_->errors(ReadStatus::out_of_range), 1U);
}

TEST_F(XeCard, ALinkOfTheProcessorOrOfTheCardsOwnSwitchIsNotTheSlot) {
  write("current_link_speed", "Unknown\n");
  write("current_link_width", "0\n");
  EXPECT_EQ(sampled(), "");
  write("current_link_speed", "2.5 GT/s PCIe\n");
  write("current_link_width", "1\n");
  EXPECT_EQ(sampled(), "");
  EXPECT_EQ(page_->errors(ReadStatus::out_of_range), 0U);
}

TEST_F(XeCard, ErrorsOfItsPort) {
  write("aer_dev_fatal", "Undefined 0\nDLP 3\nTOTAL_ERR_FATAL 3\n");
  EXPECT_EQ(sampled(),
            "gpu_pcie_errors_total{severity=\"fatal\",kind=\"data_link_protocol\"} 3\n"
            "gpu_pcie_errors_total{severity=\"fatal\",kind=\"undefined\"} 0\n");
}

TEST_F(I915Card, SensorsHaveNoLabels) {
  write("hwmon/hwmon1/name", "i915\n");
  write("hwmon/hwmon1/energy1_input", "25637161804\n");
  write("hwmon/hwmon1/temp1_input", "55000\n");
  write("hwmon/hwmon1/in0_input", "603\n");
  write("hwmon/hwmon1/power1_max", "55000000\n");
  write("hwmon/hwmon1/power1_rated_max", "0\n");
  write("hwmon/hwmon2/name", "i915_gt0\n");
  write("hwmon/hwmon2/energy1_input", "1\n");
  EXPECT_EQ(sampled(),
            "gpu_energy_joules_total 25637.161804\n"
            "gpu_power_limit_watts{limit=\"enforced\"} 55\n"
            "gpu_temperature_celsius{sensor=\"core\"} 55\n"
            "gpu_voltage_volts{rail=\"gfx\"} 0.603\n");
}

TEST_F(I915Card, OldGraphicsHaveFilesOfTheWholeCardOnly) {
  write("drm/card0/gt_act_freq_mhz", "300\n");
  write("drm/card0/gt_RP0_freq_mhz", "1150\n");
  write("drm/card0/power/rc6_residency_ms", "6534\n");
  EXPECT_EQ(sampled(),
            "gpu_clock_hertz{clock=\"graphics\"} 3e+08\n"
            "gpu_clock_max_hertz{clock=\"graphics\"} 1.15e+09\n"
            "gpu_gt_idle_seconds_total{gt=\"0\"} 6.534\n");
}

TEST_F(I915Card, PowerManagementThatIsUnsupportedHasNoSeries) {
  write("power/runtime_status", "unsupported\n");
  EXPECT_EQ(sampled(), "");
  write("power/runtime_status", "active\n");
  EXPECT_EQ(sampled(), "gpu_suspended 0\n");
}

}  // namespace
}  // namespace gpumeter::intel
