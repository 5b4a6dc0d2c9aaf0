#include <gtest/gtest.h>

#include <map>

#include "collectors/nvidia/identity.hpp"

namespace gpumeter::nvidia {
namespace {

using Values = std::map<std::string_view, double>;

Facts chip(int capability, unsigned cores, double gigahertz) {
  return {"a card of no sheet", 0xffff, capability / 10, capability % 10, cores, gigahertz * 1e9, 0, 0};
}

Values of(const Facts& card) {
  Values values;
  for (const Peak& peak : peaks_of(card)) values[peak.dtype] = peak.flops;
  return values;
}

double memory(unsigned bits, double megahertz) {
  Facts card;
  card.bus_width_bits = bits;
  card.max_memory_clock_hertz = megahertz * 1e6;
  return memory_bandwidth_of(card).value_or(0);
}

void expect_values(const Values& got, const Values& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [type, flops] : want) {
    ASSERT_TRUE(got.contains(type)) << type;
    EXPECT_DOUBLE_EQ(got.at(type), flops) << type;
  }
}

TEST(NvidiaPeaks, ASheetIsFoundByDeviceIdWhateverTheNameAndTheClocks) {
  Facts card = chip(90, 16896, 1.98);
  card.device_id = 0x2330;
  expect_values(of(card), {{"fp64", 66.9e12},
                           {"fp32", 66.9e12},
                           {"tf32", 494.7e12},
                           {"fp16", 989.4e12},
                           {"bf16", 989.4e12},
                           {"fp8", 1978.9e12},
                           {"int8", 1978.9e12}});
  EXPECT_EQ(peaks_of(card).front(), (Peak{"fp64", 66.9e12, true}));
  EXPECT_EQ(memory_bandwidth_of(card), 3350e9);
}

TEST(NvidiaPeaks, ASheetIsFoundByNameWhereTheIdIsNotKnown) {
  Facts card;
  card.name = "NVIDIA H200";
  EXPECT_DOUBLE_EQ(of(card)["bf16"], 989.4e12);
  EXPECT_EQ(memory_bandwidth_of(card), 4800e9);
}

TEST(NvidiaPeaks, TheTensorCoresHaveTheirPeakAtTheClockOfTheSheet) {
  Facts h100 = chip(90, 16896, 1.98);
  EXPECT_DOUBLE_EQ(*peak_clock_of(h100), 1.98e9);  // of no sheet
  h100.name = "NVIDIA H100 80GB HBM3";
  EXPECT_NEAR(*peak_clock_of(h100), 1.83e9, 1e6);
  Facts b200 = chip(100, 18944, 1.965);
  b200.name = "NVIDIA B200";
  EXPECT_NEAR(*peak_clock_of(b200), 1.856e9, 1e6);
  Facts rtx_5090 = chip(120, 21760, 3.09);
  rtx_5090.name = "NVIDIA GeForce RTX 5090";
  EXPECT_NEAR(*peak_clock_of(rtx_5090), 2.407e9, 1e6);
  Facts h20 = chip(90, 9984, 1.98);
  h20.name = "NVIDIA H20";
  EXPECT_EQ(peak_clock_of(h20), std::nullopt);  // 463 MHz
  EXPECT_EQ(peak_clock_of(chip(61, 3840, 1.5)), std::nullopt);
  EXPECT_EQ(peak_clock_of(chip(90, 0, 1.98)), std::nullopt);
}

TEST(NvidiaPeaks, TypesComeInOneOrder) {
  Facts card;
  card.name = "NVIDIA B200";
  std::string order;
  for (const Peak& peak : peaks_of(card)) order += std::string(peak.dtype) + ' ';
  EXPECT_EQ(order, "fp64 fp32 tf32 fp16 bf16 fp8 int8 fp4 ");
}

TEST(NvidiaPeaks, WhatASheetDoesNotNameIsAbsentAndNotComputed) {
  Facts card = chip(90, 9984, 1.98);
  card.device_id = 0x2329;  // H20
  expect_values(of(card), {{"fp16", 148e12}, {"bf16", 148e12}});
  EXPECT_EQ(memory_bandwidth_of(card), std::nullopt);
  card.max_memory_clock_hertz = 2619e6;
  card.bus_width_bits = 6144;
  EXPECT_DOUBLE_EQ(memory_bandwidth_of(card).value(), 4022.784e9);
}

TEST(NvidiaPeaks, VectorRateIsAMultiplyAddPerCoreAndClock) {
  EXPECT_DOUBLE_EQ(of(chip(90, 16896, 1.98))["fp32"], 66.90816e12);
  EXPECT_DOUBLE_EQ(of(chip(80, 6912, 1.41))["fp32"], 19.49184e12);
  EXPECT_DOUBLE_EQ(of(chip(75, 2560, 1.59))["fp32"], 8.1408e12);
  EXPECT_DOUBLE_EQ(of(chip(89, 16384, 2.52))["fp32"], 82.57536e12);
}

TEST(NvidiaPeaks, TensorRateFollowsTheComputeCapability) {
  EXPECT_DOUBLE_EQ(of(chip(70, 5120, 1.53))["fp16"], 80 * 1024 * 1.53e9);     // V100, 125
  EXPECT_DOUBLE_EQ(of(chip(75, 2560, 1.59))["fp16"], 40 * 1024 * 1.59e9);     // T4, 65
  EXPECT_DOUBLE_EQ(of(chip(80, 6912, 1.41))["fp16"], 108 * 2048 * 1.41e9);    // A100, 312
  EXPECT_DOUBLE_EQ(of(chip(89, 7424, 2.04))["fp16"], 58 * 1024 * 2.04e9);     // L4, 121
  EXPECT_DOUBLE_EQ(of(chip(90, 16896, 1.83))["fp16"], 132 * 4096 * 1.83e9);   // H100 SXM, 989
  EXPECT_DOUBLE_EQ(of(chip(90, 14592, 1.62))["fp16"], 114 * 4096 * 1.62e9);   // H100 PCIe, 756
  EXPECT_DOUBLE_EQ(of(chip(100, 18944, 1.85))["fp16"], 148 * 8192 * 1.85e9);  // B200, 2243
  EXPECT_FALSE(peaks_of(chip(80, 6912, 1.41)).front().from_table);
}

TEST(NvidiaPeaks, OtherTypesAreMultiplesOfFp16WhereTheChipHasThem) {
  const double volta = 80 * 1024 * 1.53e9, ampere = 108 * 2048 * 1.41e9, blackwell = 148 * 8192 * 1.85e9;
  expect_values(of(chip(70, 5120, 1.53)), {{"fp32", 15.6672e12}, {"fp16", volta}});
  expect_values(of(chip(80, 6912, 1.41)), {{"fp32", 19.49184e12},
                                           {"tf32", ampere / 2},
                                           {"fp16", ampere},
                                           {"bf16", ampere},
                                           {"int8", ampere * 2}});
  expect_values(of(chip(100, 18944, 1.85)), {{"fp32", 70.0928e12},
                                             {"tf32", blackwell / 2},
                                             {"fp16", blackwell},
                                             {"bf16", blackwell},
                                             {"fp8", blackwell * 2},
                                             {"int8", blackwell * 2},
                                             {"fp4", blackwell * 4}});
}

TEST(NvidiaPeaks, OfNewerCapabilitiesOnlyWhatIsPublished) {
  const double ultra = 148 * 8192 * 1.85e9;
  expect_values(
      of(chip(103, 18944, 1.85)),
      {{"fp32", 70.0928e12}, {"tf32", ultra / 2}, {"fp16", ultra}, {"bf16", ultra}, {"fp8", ultra * 2}});
  expect_values(of(chip(110, 2560, 1.575)), {{"fp32", 8.064e12}});      // Thor
  expect_values(of(chip(121, 6144, 2.418)), {{"fp32", 29.712384e12}});  // GB10
  Facts card = chip(103, 18944, 2.032);
  card.name = "NVIDIA B300 SXM6 AC";
  EXPECT_DOUBLE_EQ(of(card)["bf16"], 2250e12);
  EXPECT_FALSE(of(card).contains("fp4"));
}

TEST(NvidiaPeaks, GeForceCardsAccumulateInFp32AtHalfTheRate) {
  Facts card = chip(89, 10240, 2.55);
  card.name = "NVIDIA GeForce RTX 4080 SUPER";
  const double full = 80 * 1024 * 2.55e9;
  expect_values(of(card), {{"fp32", 52.224e12},
                           {"tf32", full / 4},
                           {"fp16", full / 2},
                           {"bf16", full / 2},
                           {"fp8", full},
                           {"int8", full * 2}});
}

TEST(NvidiaPeaks, ChipsBeforeTensorCoresAndUnknownOnesHaveTheirVectorRate) {
  expect_values(of(chip(61, 3840, 1.5)), {{"fp32", 11.52e12}});
  expect_values(of(chip(130, 1000, 2)), {{"fp32", 4e12}});
}

TEST(NvidiaPeaks, WhatTheDriverDoesNotTellGivesNothing) {
  EXPECT_TRUE(peaks_of({}).empty());
  EXPECT_TRUE(peaks_of(chip(90, 0, 1.98)).empty());
  EXPECT_TRUE(peaks_of(chip(90, 16896, 0)).empty());
  EXPECT_EQ(memory_bandwidth_of({}), std::nullopt);
}

TEST(NvidiaPeaks, MemoryMovesTwiceAClock) {
  EXPECT_DOUBLE_EQ(memory(5120, 2619), 3352.32e9);   // H100
  EXPECT_DOUBLE_EQ(memory(5120, 1215), 1555.2e9);    // A100 40 GB
  EXPECT_DOUBLE_EQ(memory(384, 10501), 1008.096e9);  // RTX 4090
}

/// Data sheets against the formula, at the clock of the sheet. The test detects a wrong factor of two
/// (sparsity) or a wrong digit.
struct Known {
  unsigned device_id;
  int capability;
  unsigned cores;
  double gigahertz;
  const char* name;
};

class SheetAndFormula : public testing::TestWithParam<Known> {};

TEST_P(SheetAndFormula, AgreeWithinTwoPercent) {
  const Known& known = GetParam();
  Facts by_formula = chip(known.capability, known.cores, known.gigahertz);
  by_formula.name = known.name;
  Facts by_sheet = by_formula;
  by_sheet.device_id = known.device_id;
  ASSERT_TRUE(peaks_of(by_sheet).front().from_table);
  const Values formula = of(by_formula);
  for (const Peak& peak : peaks_of(by_sheet)) {
    if (peak.dtype == "fp64" || peak.dtype == "fp32") continue;  // not at the tensor cores' clock
    EXPECT_NEAR(peak.flops / formula.at(peak.dtype), 1, 0.021) << peak.dtype;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cards, SheetAndFormula,
    testing::Values(Known{0x1db1, 70, 5120, 1.53, "a V100 SXM2"}, Known{0x1eb8, 75, 2560, 1.59, "a T4"},
                    Known{0x20b2, 80, 6912, 1.41, "an A100"}, Known{0x20b7, 80, 3584, 1.44, "an A30"},
                    Known{0x2236, 86, 9216, 1.695, "an A10"}, Known{0x2235, 86, 10752, 1.74, "an A40"},
                    Known{0x2230, 86, 10752, 1.8, "an RTX A6000"}, Known{0x27b8, 89, 7424, 2.04, "an L4"},
                    Known{0x26b9, 89, 18176, 2.52, "an L40S"}, Known{0x2330, 90, 16896, 1.83, "an H100 SXM"},
                    Known{0x2331, 90, 14592, 1.62, "an H100 PCIe"}, Known{0x2335, 90, 16896, 1.83, "an H200"},
                    Known{0x2901, 100, 18944, 1.85, "a B200"},
                    Known{0x2204, 86, 10496, 1.695, "a GeForce 3090"},
                    Known{0x2684, 89, 16384, 2.52, "a GeForce 4090"},
                    Known{0x2b85, 120, 21760, 2.407, "a GeForce 5090"}));

}  // namespace
}  // namespace gpumeter::nvidia
