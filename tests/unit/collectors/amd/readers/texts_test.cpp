#include "collectors/amd/readers/texts.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/amd_card_test.hpp"

namespace gpumeter::amd {
namespace {

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
