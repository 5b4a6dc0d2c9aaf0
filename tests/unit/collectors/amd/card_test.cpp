#include "collectors/amd/card.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/amd_card.hpp"
#include "tests/fakes/amd_card_test.hpp"
#include "tests/fakes/sampled_page.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::amd {
namespace {

/// A card of the given PCI device with no file but gpu_metrics.
class BlobCard {
 public:
  BlobCard(std::string_view device, const std::string& bytes, Tree::Files files = {})
      : page_(amd_device({}, {})) {
    const std::string uevent = "DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_ID=1002:" + std::string(device) + "\n";
    tree_.write("0000:0c:00.0/uevent", uevent);
    for (const auto& [name, content] : files) tree_.write("0000:0c:00.0/" + std::string(name), content);
    write(bytes);
    DeviceInfo info;
    info.source = tree_ / "0000:0c:00.0";
    page_.attach(info);
    page_.pass_all();
  }

  void write(const std::string& bytes) { tree_.write("0000:0c:00.0/gpu_metrics", bytes); }
  void pass() { page_.pass(Tier::fast, std::chrono::seconds(1)); }
  std::string text(const std::vector<std::string_view>& without = {}) const { return page_.text(without); }

 private:
  const Tree tree_{{}};
  SampledPage page_;
};

FakeBlob powered(FakeBlob blob, std::string_view power, std::uint64_t energy) {
  return blob.set(power, 300).set("energy_accumulator", energy);
}

TEST(BlobReaders, EnergyIsTheHardwaresWhereItsUnitIsKnown) {
  const std::string of_hardware =
      "gpu_energy_joules_total 2\n"
      "gpu_power_max_watts{window=\"1m\"} 300\n"
      "gpu_power_min_watts{window=\"1m\"} 300\n"
      "gpu_power_watts 300\n";
  const std::string bytes = powered(FakeBlob(1, 3), "average_socket_power", 2 * 65536).bytes();
  EXPECT_EQ(BlobCard("740F", bytes).text(), of_hardware);  // MI210
  const std::string integrated =
      "gpu_energy_joules_total 0\n"
      "gpu_power_max_watts{window=\"1m\"} 300\n"
      "gpu_power_min_watts{window=\"1m\"} 300\n"
      "gpu_power_watts 300\n";
  EXPECT_EQ(BlobCard("738C", bytes).text(), integrated);  // MI100
  EXPECT_EQ(BlobCard("73BF", bytes).text(), integrated);  // Navi 21
}

TEST(BlobReaders, EnergyFrom1_4OnIsTheHardwares) {
  BlobCard card("74A1", powered(FakeBlob(1, 4), "curr_socket_power", 2 * 65536).bytes());
  card.write(powered(FakeBlob(1, 4), "curr_socket_power", 5 * 65536).bytes());
  card.pass();
  EXPECT_EQ(card.text({"gpu_power"}), "gpu_energy_joules_total 5\n");
}

TEST(BlobReaders, AnAccumulatorOfZeroIsNone) {
  BlobCard card("740F", powered(FakeBlob(1, 3), "average_socket_power", 0).bytes());
  card.pass();
  EXPECT_EQ(card.text({"gpu_power"}), "gpu_energy_joules_total 300\n");  // integrated
}

TEST(BlobReaders, TheSecondDieOfAnMi250HasNoPowerOfItsOwn) {
  const std::string none =
      powered(FakeBlob(1, 3), "average_socket_power", 0).set("average_socket_power", 0).bytes();
  const Tree::Files files = {{"hwmon/hwmon1/name", "amdgpu\n"}, {"hwmon/hwmon1/power1_average", "0\n"}};
  EXPECT_EQ(BlobCard("740C", none, files).text(), "");
  EXPECT_EQ(BlobCard("744C", none, files).text({"gpu_power_m", "gpu_energy"}), "gpu_power_watts 0\n");
}

TEST(BlobReaders, ApusTellRailsTemperaturesAndAverageClocks) {
  const BlobCard card("15BF", FakeBlob(2, 1)
                                  .set("temperature_gfx", 2500)
                                  .set("temperature_soc", 2737)
                                  .set("average_socket_power", 3401)
                                  .set("average_soc_power", 743)
                                  .set("average_gfx_power", 585)
                                  .set("average_gfx_activity", 79)
                                  .set("average_socclk_frequency", 400)
                                  .set("average_fclk_frequency", 500)
                                  .set("current_fclk", 600)
                                  .bytes());
  EXPECT_EQ(card.text(),
            "gpu_clock_hertz{clock=\"fabric\"} 6e+08\n"
            "gpu_clock_hertz{clock=\"soc\"} 4e+08\n"
            "gpu_power_rail_watts{rail=\"gpu\"} 0.585\n"
            "gpu_power_rail_watts{rail=\"soc\"} 0.743\n"
            "gpu_rail_energy_joules_total{rail=\"gpu\"} 0\n"
            "gpu_rail_energy_joules_total{rail=\"soc\"} 0\n"
            "gpu_temperature_celsius{sensor=\"core\"} 25\n"
            "gpu_temperature_celsius{sensor=\"soc\"} 27.37\n");
}

TEST(BlobReaders, LinksAreAddedUp) {
  const BlobCard card("74A1", FakeBlob(1, 7)
                                  .set("xgmi_read_data_acc", 3, 0)
                                  .set("xgmi_read_data_acc", 4, 5)
                                  .set("xgmi_write_data_acc", 5, 0)
                                  .set("xgmi_link_status", 1, 0)
                                  .set("xgmi_link_status", 0, 5)
                                  .set("xgmi_link_status", 2, 7)
                                  .set("pcie_replay_count_acc", 12)
                                  .bytes());
  EXPECT_EQ(card.text(),
            "gpu_interconnect_links_up{kind=\"xgmi\"} 1\n"
            "gpu_interconnect_links{kind=\"xgmi\"} 2\n"
            "gpu_interconnect_received_bytes_total{kind=\"xgmi\"} 7168\n"
            "gpu_interconnect_transmitted_bytes_total{kind=\"xgmi\"} 5120\n"
            "gpu_pcie_replays_total 12\n");
}

TEST(BlobReaders, EnginesAreAsBusyAsTheBusiestOfTheirKind) {
  const BlobCard mi300(
      "74A1",
      FakeBlob(1, 8).set("vcn_busy", 30, 1, 0).set("vcn_busy", 80, 3, 7).set("jpeg_busy", 5, 39, 2).bytes());
  EXPECT_EQ(mi300.text({"gpu_engine_busy"}),
            "gpu_engine_utilization_ratio{engine=\"decode\"} 0.8\n"
            "gpu_engine_utilization_ratio{engine=\"jpeg\"} 0.05\n");
  const std::string mm = FakeBlob(1, 3).set("average_mm_activity", 0).bytes();
  EXPECT_EQ(BlobCard("744C", mm).text({"gpu_engine_busy"}),
            "gpu_engine_utilization_ratio{engine=\"decode\"} 0\n");
  EXPECT_EQ(BlobCard("740F", mm).text(), "");  // a constant of MI200's driver
}

TEST(BlobReaders, UmcActivityIsTrafficFrom1_4On) {
  const BlobCard mi300("74A1",
                       FakeBlob(1, 7).set("average_umc_activity", 40).set("mem_max_bandwidth", 5300).bytes());
  EXPECT_EQ(mi300.text({"gpu_memory_controller"}),
            "gpu_memory_bandwidth_utilization_ratio 0.4\n"
            "gpu_memory_bandwidth_utilization_seconds_total 0\n"
            "gpu_peak_memory_bandwidth_bytes_per_second 5.3e+12\n");
  const BlobCard mi210("740F", FakeBlob(1, 3).set("average_umc_activity", 40).bytes());
  EXPECT_EQ(mi210.text({"gpu_memory_controller"}), "");
}

TEST(BlobReaders, ThrottleBitsOfTheChipAreAskedWhereThereAreNoOthers) {
  const std::string bytes = FakeBlob(1, 1).set("throttle_status", 1 << 2).bytes();
  EXPECT_EQ(BlobCard("73BF", bytes).text({"gpu_throttle_"}),
            "gpu_throttled{cause=\"current\"} 0\n"
            "gpu_throttled{cause=\"power\"} 0\n"
            "gpu_throttled{cause=\"reliability\"} 0\n"
            "gpu_throttled{cause=\"thermal\"} 1\n");
  EXPECT_EQ(BlobCard("7310", bytes).text(), "");  // the meaning of its bits is unknown
}

TEST(BlobReaders, ResidenciesGiveSecondsAndNoBits) {
  const auto at = [](std::uint64_t seconds, std::uint64_t ppt, std::uint64_t hbm) {
    FakeBlob blob(1, 6);
    for (const char* const name : {"prochot", "socket_thm", "vr_thm"})
      blob.set(name + std::string("_residency_acc"), 0);
    blob.set("firmware_timestamp", seconds * 100'000'000).set("accumulation_counter", seconds * 1000);
    return blob.set("ppt_residency_acc", ppt).set("hbm_thm_residency_acc", hbm).bytes();
  };
  BlobCard card("74A1", at(1, 700, 0));
  card.write(at(3, 1200, 100));
  card.pass();
  EXPECT_EQ(card.text(),
            "gpu_throttle_reason_seconds_total{cause=\"hardware\",reason=\"prochot\"} 0\n"
            "gpu_throttle_reason_seconds_total{cause=\"power\",reason=\"ppt\"} 0.5\n"
            "gpu_throttle_reason_seconds_total{cause=\"thermal\",reason=\"hbm_thm\"} 0.1\n"
            "gpu_throttle_reason_seconds_total{cause=\"thermal\",reason=\"socket_thm\"} 0\n"
            "gpu_throttle_reason_seconds_total{cause=\"thermal\",reason=\"vr_thm\"} 0\n"
            "gpu_throttle_seconds_total{cause=\"hardware\"} 0\n"
            "gpu_throttle_seconds_total{cause=\"power\"} 0.5\n"
            "gpu_throttle_seconds_total{cause=\"thermal\"} 0.1\n");
}

/// A table of the firmware after so many seconds of it, with 1000 cycles each.
FakeBlob blob_at(std::uint64_t seconds, int content) {
  return FakeBlob(1, content)
      .set("firmware_timestamp", seconds * 100'000'000)
      .set("accumulation_counter", seconds * 1000);
}

TEST(BlobReaders, BusyTimeIsCountedByTheFirmware) {
  const auto at = [](std::uint64_t seconds, std::uint64_t gfx, std::uint64_t memory) {
    return blob_at(seconds, 6)
        .set("average_gfx_activity", 99)
        .set("average_umc_activity", 46)
        .set("gfx_activity_acc", gfx)
        .set("mem_activity_acc", memory)
        .bytes();
  };
  BlobCard card("74A1", at(1, 0xffffffff - 50000, 0));
  const auto seconds = [&card](const std::string& bytes) {
    card.write(bytes);
    card.pass();
    return card.text(
        {"gpu_utilization", "gpu_memory_bandwidth_utilization_ratio", "gpu_memory_controller_u"});
  };
  const auto text = [](const std::string& gfx, const std::string& memory) {
    return "gpu_busy_seconds_total " + gfx + "\ngpu_memory_bandwidth_utilization_seconds_total " + memory +
           "\ngpu_memory_controller_busy_seconds_total " + memory + "\n";
  };
  EXPECT_EQ(seconds(at(3, 29999, 50000)), text("0.8", "0.5"));  // the first wraps at 32 bits
  EXPECT_EQ(seconds(at(1, 5000, 70)), text("0.8", "0.5"));      // the card was reset
  EXPECT_EQ(seconds(at(2, 105000, 70)), text("1.8", "0.5"));
}

TEST(BlobReaders, BusyTimeWithoutTheFirmwaresCyclesIsIntegrated) {
  for (const auto& [device, content] :
       {std::pair("740F", 3), std::pair("74A1", 5)}) {  // MI210, an older MI300X
    const auto at = [content = content](std::uint64_t seconds) {
      return FakeBlob(1, content)
          .set("firmware_timestamp", seconds * 100'000'000)
          .set("average_gfx_activity", 40)
          .set("gfx_activity_acc", seconds * 90000)
          .bytes();
    };
    BlobCard card(device, at(1));
    card.write(at(2));
    card.pass();
    EXPECT_EQ(card.text({"gpu_utilization"}), "gpu_busy_seconds_total 0.4\n") << device;
  }
}

TEST(BlobReaders, EachDieHasTheTimeBelowItsClockLimit) {
  const auto at = [](std::uint64_t seconds, std::uint64_t lost) {
    FakeBlob blob = blob_at(seconds, 8);
    for (std::size_t part = 0; part < 2; ++part) {
      blob.set("gfx_below_host_limit_ppt_acc", part * lost, 0, part)
          .set("gfx_below_host_limit_thm_acc", 0, 0, part)
          .set("gfx_low_utilization_acc", lost / 2, 0, part)
          .set("gfx_below_host_limit_total_acc", lost, 0, part);
    }
    return blob.bytes();
  };
  BlobCard card("74A1", at(1, 0));
  card.write(at(2, 500));
  card.pass();
  EXPECT_EQ(card.text(),
            "gpu_clock_below_limit_cause_seconds_total{xcd=\"0\",cause=\"low_utilization\"} 0.25\n"
            "gpu_clock_below_limit_cause_seconds_total{xcd=\"0\",cause=\"power\"} 0\n"
            "gpu_clock_below_limit_cause_seconds_total{xcd=\"0\",cause=\"thermal\"} 0\n"
            "gpu_clock_below_limit_cause_seconds_total{xcd=\"1\",cause=\"low_utilization\"} 0.25\n"
            "gpu_clock_below_limit_cause_seconds_total{xcd=\"1\",cause=\"power\"} 0.5\n"
            "gpu_clock_below_limit_cause_seconds_total{xcd=\"1\",cause=\"thermal\"} 0\n"
            "gpu_clock_below_limit_seconds_total{xcd=\"0\"} 0.5\n"
            "gpu_clock_below_limit_seconds_total{xcd=\"1\"} 0.5\n");
  BlobCard older("74A1", blob_at(1, 7).set("gfx_below_host_limit_acc", 0, 0, 0).bytes());
  older.write(blob_at(3, 7).set("gfx_below_host_limit_acc", 500, 0, 0).bytes());
  older.pass();
  EXPECT_EQ(older.text(), "gpu_clock_below_limit_seconds_total{xcd=\"0\"} 0.5\n");
}

TEST(LevelTest, OfAListWithAMark) {
  constexpr std::string_view kLevels = "0: 96Mhz \n1: 456Mhz *\n2: 772Mhz \n3: 1218Mhz \n";
  EXPECT_EQ(highest_level(kLevels), 1218);
  EXPECT_EQ(current_level(kLevels), 456);
}

TEST(LevelTest, TheHighestNeedNotBeTheLast) {
  EXPECT_EQ(highest_level("0: 1600Mhz *\n1: 1067Mhz\n2: 400Mhz"), 1600);
}

TEST(LevelTest, DeepSleepIsTheCurrentLevelWhereItIsMarked) {
  EXPECT_EQ(current_level("S: 19Mhz *\n0: 500Mhz \n1: 2371Mhz \n"), 19);
  EXPECT_EQ(current_level("S: 500Mhz \n1: 789Mhz *\n2: 2070Mhz \n"), 789);
}

TEST(LevelTest, NoMarkSaysNothingOfTheCurrentOne) {
  EXPECT_EQ(highest_level("0: 300Mhz \n1: 1900Mhz \n"), 1900);
  EXPECT_EQ(current_level("0: 300Mhz \n1: 1900Mhz \n"), std::nullopt);
}

TEST(LevelTest, TheFirstOfSeveralMarks) {
  EXPECT_EQ(current_level("0: 800Mhz *\n1: 801Mhz *\n2: 1200Mhz \n"), 800);
}

TEST(LevelTest, OtherTextsHaveNone) {
  for (const std::string_view text :
       {"", "\n", "0:", "0: Mhz *", "0: 8.0GT/s, x16 *", "abc", "0: 99999999999Mhz *", "0: -1Mhz *"}) {
    EXPECT_EQ(highest_level(text), std::nullopt) << text;
    EXPECT_EQ(current_level(text), std::nullopt) << text;
  }
}

TEST(LinksTest, AreTheSumOverTheHive) {
  EXPECT_EQ(sum_of_links("00 02 02 01 \n"), 5);
  EXPECT_EQ(sum_of_links("0a 00"), 10);
  EXPECT_EQ(sum_of_links("00 \n"), 0);
  EXPECT_EQ(sum_of_links(""), std::nullopt);
  EXPECT_EQ(sum_of_links("02 zz"), std::nullopt);
}

class TextRowsTest : public OneCard {};

TEST_F(TextRowsTest, VideoEngine) {
  write("vcn_busy_percent", "37\n");
  EXPECT_EQ(sampled(),
            "gpu_engine_busy_seconds_total{engine=\"decode\"} 0\n"
            "gpu_engine_utilization_ratio{engine=\"decode\"} 0.37\n");
}

TEST_F(TextRowsTest, ClocksFromTheLevelsWhereNothingElseTells) {
  write("pp_dpm_sclk", "S: 19Mhz *\n0: 500Mhz \n1: 2371Mhz \n");
  write("pp_dpm_mclk", "0: 96Mhz \n1: 1124Mhz *\n");
  write("pp_dpm_socclk", "0: 417Mhz \n1: 1476Mhz \n");
  write("pp_dpm_fclk", "0: 400Mhz *\n1: 1960Mhz \n");
  write("pp_dpm_vclk", "0: 0Mhz *\n1: 0Mhz *\n");
  EXPECT_EQ(sampled(),
            "gpu_clock_hertz{clock=\"fabric\"} 4e+08\n"
            "gpu_clock_hertz{clock=\"graphics\"} 1.9e+07\n"
            "gpu_clock_hertz{clock=\"memory\"} 1.124e+09\n"
            "gpu_clock_max_hertz{clock=\"fabric\"} 1.96e+09\n"
            "gpu_clock_max_hertz{clock=\"graphics\"} 2.371e+09\n"
            "gpu_clock_max_hertz{clock=\"memory\"} 1.124e+09\n"
            "gpu_clock_max_hertz{clock=\"soc\"} 1.476e+09\n");
}

TEST_F(TextRowsTest, HwmonGoesBeforeTheLevels) {
  write("hwmon/hwmon5/name", "amdgpu\n");
  write("hwmon/hwmon5/freq1_label", "sclk\n");
  write("hwmon/hwmon5/freq1_input", "2400000000\n");
  write("pp_dpm_sclk", "0: 500Mhz *\n1: 2371Mhz \n");
  EXPECT_EQ(sampled({"gpu_clock_max"}), "gpu_clock_hertz{clock=\"graphics\"} 2.4e+09\n");
}

TEST_F(TextRowsTest, EmptyLevelFilesAreNoClocks) {
  write("pp_dpm_sclk", "");
  write("pp_dpm_mclk", "\n");
  EXPECT_EQ(sampled(), "");
  EXPECT_EQ(page_->errors(ReadStatus::failed), 0U);
}

TEST_F(TextRowsTest, ErrorsOfMemoryAndOfOtherBlocksAreApart) {
  write("ras/umc_err_count", "ue: 1\nce: 17\nde: 3\n");
  write("ras/gfx_err_count", "ue: 0\nce: 2\n");
  EXPECT_EQ(sampled(),
            "gpu_hardware_errors_total{block=\"gfx\",severity=\"corrected\"} 2\n"
            "gpu_hardware_errors_total{block=\"gfx\",severity=\"uncorrected\"} 0\n"
            "gpu_memory_errors_total{severity=\"corrected\",location=\"umc\"} 17\n"
            "gpu_memory_errors_total{severity=\"deferred\",location=\"umc\"} 3\n"
            "gpu_memory_errors_total{severity=\"uncorrected\",location=\"umc\"} 1\n");
}

TEST_F(TextRowsTest, HardwareErrorsStayWhileTheCardIsResetAndGoOnAfterIt) {
  const std::string counted =
      "gpu_hardware_errors_total{block=\"sdma\",severity=\"corrected\"} 5\n"
      "gpu_hardware_errors_total{block=\"sdma\",severity=\"uncorrected\"} 0\n";
  write("ras/sdma_err_count", "ue: 0\nce: 5\n");
  EXPECT_EQ(sampled(), counted);
  write("ras/sdma_err_count", "Query currently inaccessible\n");
  page_->pass(Tier::slow);
  EXPECT_EQ(page_->text(), counted);
  EXPECT_EQ(page_->errors(ReadStatus::failed), 2U);
  write("ras/sdma_err_count", "ue: 1\nce: 6\n");
  page_->pass(Tier::slow);
  EXPECT_EQ(page_->text(),
            "gpu_hardware_errors_total{block=\"sdma\",severity=\"corrected\"} 6\n"
            "gpu_hardware_errors_total{block=\"sdma\",severity=\"uncorrected\"} 1\n");
}

TEST_F(TextRowsTest, RetiredPagesAreThoseWithAnR) {
  std::string lines;
  for (int i = 0; i < 300; ++i)
    lines += "0x000fab1c : 0x00001000 : R\n";  // more than the kernel returns at once
  write("ras/gpu_vram_bad_pages", lines + "0x000fab1c : 0x00001000 : P\n0x000fab1d : 0x00001000 : F\n");
  EXPECT_EQ(sampled(), "gpu_retired_pages{cause=\"uncorrected\"} 300\n");
  write("ras/gpu_vram_bad_pages", "");
  EXPECT_EQ(sampled(), "gpu_retired_pages{cause=\"uncorrected\"} 0\n");
}

TEST_F(TextRowsTest, PcieErrorsBySeverityAndKind) {
  write("aer_dev_correctable", "RxErr 4\nBadTLP 0\nTOTAL_ERR_COR 4\n");
  write("aer_dev_nonfatal", "CmpltTO 2\nTOTAL_ERR_NONFATAL 2\n");
  write("aer_dev_fatal", "DLP 1\nTOTAL_ERR_FATAL 1\n");
  EXPECT_EQ(sampled(),
            "gpu_pcie_errors_total{severity=\"correctable\",kind=\"bad_tlp\"} 0\n"
            "gpu_pcie_errors_total{severity=\"correctable\",kind=\"receiver\"} 4\n"
            "gpu_pcie_errors_total{severity=\"fatal\",kind=\"data_link_protocol\"} 1\n"
            "gpu_pcie_errors_total{severity=\"nonfatal\",kind=\"completion_timeout\"} 2\n");
}

TEST_F(TextRowsTest, LinksOfAHive) {
  write("xgmi_num_links", "00 02 02 02 \n");
  write("xgmi_error", "3\n");  // never read, because a read resets it
  EXPECT_EQ(sampled(), "gpu_interconnect_links{kind=\"xgmi\"} 6\n");
}

TEST_F(TextRowsTest, ASleepingCardIsNotAskedButForWhatTheKernelCountsItself) {
  write("power/runtime_status", "suspended\n");
  write("ras/umc_err_count", "ue: 1\nce: 17\n");
  write("pp_dpm_sclk", "0: 500Mhz *\n1: 2371Mhz \n");
  write("aer_dev_correctable", "RxErr 4\n");
  EXPECT_EQ(sampled(),
            "gpu_pcie_errors_total{severity=\"correctable\",kind=\"receiver\"} 4\n"
            "gpu_suspended 1\n");
}

}  // namespace
}  // namespace gpumeter::amd
