#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/intel_card_test.hpp"

// What files of real cards contain that a reader may mistake for a value. The tests of each:
//   act_freq 0 while idle, rpa_freq 627200        XeCard.ClocksOfSeveralTilesAndAMediaGt
//   energy1_input 0 XeCard.ACardWhoseFirmwareCountsNoEnergyIsMeteredByItsPackage power1_rated_max 0
//   XeCard.PowerLimitsOfZeroAreOff link speed "Unknown", "2.5 GT/s PCIe", width 0 and 1
//                                                 XeCard.ALinkOfTheProcessorOrOfTheCardsOwnSwitchIsNotTheSlot,
//                                                 LinkTest
//   throttle/reasons "none"                       ActiveReasons.AreWordsOrNone
//   hwmon folders with any number                 HwmonTest.IsFoundByNameWhateverItsNumber
//   runtime_status "unsupported"                  I915Card.PowerManagementThatIsUnsupportedHasNoSeries
//   no hwmon and no throttle files                XeCard.WithNothingHasNoSeries, golden page intel_integrated
//   temperatures without labels on i915           I915Card.SensorsHaveNoLabels
//   a fan that stands still, one that is missing  XeCard.FansAreThoseWithAFileAndMayStandStill
//   memory from a query, but no hwmon             CardMemory.IsAskedForOnceAPassAndNotWhileTheCardSleeps
//   power_profile, dev_state, uevent, config      below

namespace gpumeter::intel {
namespace {

class IntelTraps : public OneIntelCard {};

TEST_F(IntelTraps, FilesMayEndWithoutALineFeed) {
  write("hwmon/hwmon0/name", "xe");
  write("hwmon/hwmon0/temp2_label", "pkg");
  write("hwmon/hwmon0/temp2_input", "56000");
  write("tile0/gt0/gtidle/name", "gt0-rc");
  write("tile0/gt0/freq0/act_freq", "1400");
  EXPECT_EQ(sampled(),
            "gpu_clock_hertz{clock=\"graphics\"} 1.4e+09\n"
            "gpu_temperature_celsius{sensor=\"core\"} 56\n");
}

TEST_F(IntelTraps, FilesThatAreNoValuesGiveNoSeriesAndNoErrors) {
  write("config", std::string(256, '\xff'));
  write("tile0/gt0/freq0/power_profile", "[base]    power_saving\n");
  write("xe.mei-gscfi.768/mei/mei0/dev_state", "ENABLED");
  write("xe.mei-gscfi.768/mei/mei0/uevent", "");
  write("hwmon/hwmon2/name", "xe\n");
  write("hwmon/hwmon2/uevent", "");
  write("hwmon/hwmon2/temp2_label", "");
  write("hwmon/hwmon2/power1_max_interval", "28000\n");
  EXPECT_EQ(sampled(), "");
  for (const ReadStatus status : {ReadStatus::failed, ReadStatus::out_of_range})
    EXPECT_EQ(page_->errors(status), 0U);
}

TEST_F(IntelTraps, ACardWithAnEmptyUeventIsRead) {
  write("uevent", "");
  write("current_link_speed", "16.0 GT/s PCIe\n");
  write("max_link_speed", "16.0 GT/s PCIe\n");
  write("max_link_width", "8\n");
  write("hwmon/hwmon0/name", "xe\n");
  write("hwmon/hwmon0/fan1_input", "945\n");
  EXPECT_EQ(sampled(),
            "gpu_fan_speed_rpm{fan=\"0\"} 945\n"
            "gpu_pcie_link_generation 4\n"
            "gpu_pcie_link_max_generation 4\n"
            "gpu_pcie_link_max_lanes 8\n");
}

}  // namespace
}  // namespace gpumeter::intel
