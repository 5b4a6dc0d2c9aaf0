#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "collectors/nvidia/identity.hpp"

namespace gpumeter::nvidia {
namespace {

constexpr double kGiga = 1e9;
enum Type : std::size_t { kFp64, kFp32, kTf32, kFp16, kBf16, kFp8, kInt8, kFp4, kTypeCount };
static_assert(std::size(kDtypes) == kTypeCount);
using Rates = std::array<double, kTypeCount>;

/// One model from its data sheet: tera-operations per second as in kDtypes, then GB/s. 0: the card has no
/// such unit, or no data sheet states the rate. Device ids come from NVIDIA's list of supported GPUs
/// (README.md of open-gpu-kernel-modules) and from pci.ids.
struct Sheet {
  std::string_view name;
  std::array<unsigned, 3> device_ids;
  Rates tera;
  double giga_bytes;
};

// Data sheets that print Tensor Core rates with sparsity (all of Ada, Hopper, Blackwell) are halved here.
// From A100 on, fp64 is the rate of the tensor cores, which have it in full precision.
// clang-format off
constexpr Sheet kSheets[] = {
    // Tesla V100 data sheet, January 2020 (SXM2, PCIe, V100S)
    {"Tesla V100-SXM2-16GB", {0x1db1}, {7.8, 15.7, 0, 125, 0, 0, 0, 0}, 900},
    {"Tesla V100-SXM2-32GB", {0x1db5}, {7.8, 15.7, 0, 125, 0, 0, 0, 0}, 900},
    {"Tesla V100-PCIE-16GB", {0x1db4}, {7, 14, 0, 112, 0, 0, 0, 0}, 900},
    {"Tesla V100-PCIE-32GB", {0x1db6}, {7, 14, 0, 112, 0, 0, 0, 0}, 900},
    {"Tesla V100S-PCIE-32GB", {0x1df6}, {8.2, 16.4, 0, 130, 0, 0, 0, 0}, 1134},
    // T4 data sheet, March 2019; bandwidth: T4 product brief PB-09256
    {"Tesla T4", {0x1eb8}, {0, 8.1, 0, 65, 0, 0, 130, 0}, 320},
    // A100 data sheet, June 2021
    {"NVIDIA A100-SXM4-40GB", {0x20b0}, {19.5, 19.5, 156, 312, 312, 0, 624, 0}, 1555},
    {"NVIDIA A100-PCIE-40GB", {0x20f1, 0x20b1}, {19.5, 19.5, 156, 312, 312, 0, 624, 0}, 1555},
    {"NVIDIA A100-SXM4-80GB", {0x20b2}, {19.5, 19.5, 156, 312, 312, 0, 624, 0}, 2039},
    {"NVIDIA A100 80GB PCIe", {0x20b5}, {19.5, 19.5, 156, 312, 312, 0, 624, 0}, 1935},
    // A30 data sheet, March 2022; A10 and A40 data sheets, March 2021; RTX A6000 data sheet and GA102 white paper
    {"NVIDIA A30", {0x20b7}, {10.3, 10.3, 82, 165, 165, 0, 330, 0}, 933},
    {"NVIDIA A10", {0x2236}, {0, 31.2, 62.5, 125, 125, 0, 250, 0}, 600},
    {"NVIDIA A40", {0x2235}, {0, 37.4, 74.8, 149.7, 149.7, 0, 299.3, 0}, 696},
    {"NVIDIA RTX A6000", {0x2230}, {0, 38.7, 77.4, 154.8, 154.8, 0, 309.7, 0}, 768},
    // L4 data sheet, March 2023 (120, 242 and 485 with sparsity); L40 and L40S data sheets, 2023
    {"NVIDIA L4", {0x27b8}, {0, 30.3, 60, 121, 121, 242.5, 242.5, 0}, 300},
    {"NVIDIA L40", {0x26b5}, {0, 90.5, 90.5, 181.05, 181.05, 362, 362, 0}, 864},
    {"NVIDIA L40S", {0x26b9}, {0, 91.6, 183, 362.05, 362.05, 733, 733, 0}, 864},
    // H100 white paper, table of peak rates (SXM5, PCIe); its bandwidth: H100 data sheet; NVL: H100 data sheet, 2024
    {"NVIDIA H100 80GB HBM3", {0x2330}, {66.9, 66.9, 494.7, 989.4, 989.4, 1978.9, 1978.9, 0}, 3350},
    {"NVIDIA H100 PCIe", {0x2331}, {51.2, 51.2, 378, 756, 756, 1513, 1513, 0}, 2039},
    {"NVIDIA H100 NVL", {0x2321}, {60, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5, 0}, 3900},
    // H200 data sheet, November 2024: the chip of H100 with different memory
    {"NVIDIA H200", {0x2335}, {66.9, 66.9, 494.7, 989.4, 989.4, 1978.9, 1978.9, 0}, 4800},
    {"NVIDIA H200 NVL", {0x233b}, {60, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5, 0}, 4800},
    // H20: torchtitan's get_peak_flops, the only published rate
    {"NVIDIA H20", {0x2329}, {0, 0, 0, 148, 148, 0, 0, 0}, 0},
    // Blackwell data sheet, "Individual Blackwell GPU Specifications" of GB200 NVL72 and HGX B200, 2025
    {"NVIDIA B200", {0x2901, 0x2909}, {37, 75, 1100, 2250, 2250, 4500, 4500, 9000}, 7700},
    {"NVIDIA GB200", {0x2941}, {40, 80, 1250, 2500, 2500, 5000, 5000, 10000}, 8000},
    // HGX B300 specifications, 2025, by GPU; their int8 and fp4 differ between editions. Its device id is not needed.
    {"NVIDIA B300 SXM6 AC", {}, {1.25, 75, 1125, 2250, 2250, 4500, 0, 0}, 0},
    // White papers of GA102, AD102 and GB202, appendix; fp16 is the rate with fp32 accumulate
    {"NVIDIA GeForce RTX 3090", {0x2204}, {0, 35.6, 35.6, 71, 71, 0, 284, 0}, 936},
    {"NVIDIA GeForce RTX 4090", {0x2684}, {0, 82.6, 82.6, 165.2, 165.2, 330.3, 660.6, 0}, 1008},
    {"NVIDIA GeForce RTX 5090", {0x2b85}, {0, 104.8, 104.8, 209.5, 209.5, 419, 838, 1676}, 1792},
};

/// By compute capability (10 x major + minor): dense fp16 operations of a multiprocessor's tensor cores per clock. The
/// others are multiples of that: tf32 1/2, fp8 and int8 2, fp4 4.
struct Chip {
  int capability;
  double fp16;
  bool tf32, fp8, int8, fp4;  // bf16 came with tf32
};
constexpr Chip kChips[] = {
    {70, 1024, false, false, false, false},  // V100: 80 x 1024 x 1.53 GHz = 125 Tflop/s
    {75, 1024, false, false, true, false},   // T4: 40 x 1024 x 1.59 = 65
    {80, 2048, true, false, true, false},    // A100: 108 x 2048 x 1.41 = 312
    {86, 1024, true, false, true, false},   // A40: 84 x 1024 x 1.74 = 149.7
    {89, 1024, true, true, true, false},    // L4: 58 x 1024 x 2.04 = 121
    {90, 4096, true, true, true, false},    // H100 SXM: 132 x 4096 x 1.83 = 989
    {100, 8192, true, true, true, true},    // B200: 148 x 8192 x 1.85 = 2243
    {103, 8192, true, true, false, false},  // B300: 148 x 8192 x 1.856 = 2250; int8 and fp4 are other multiples
    {120, 1024, true, true, true, true},    // RTX 5090: 170 x 512 x 2.407 = 209.5, see halved()
};
// clang-format on
// For 11.0 and 12.1 (Thor, GB10) NVIDIA publishes only the fp4 rate with sparsity, which does not determine
// the others.

const Sheet* sheet_of(const Facts& card) noexcept {
  const auto is_of = [&card](const Sheet& sheet) {
    const bool by_id = card.device_id != 0 && std::ranges::count(sheet.device_ids, card.device_id) != 0;
    return by_id || sheet.name == card.name;
  };
  const Sheet* const found = std::ranges::find_if(kSheets, is_of);
  return found == std::end(kSheets) ? nullptr : found;
}

/// GeForce cards from Turing on run their tensor cores at half the rate when they accumulate in fp32 (the
/// white papers' tables). int8 and fp4 run at the full rate.
bool halved(const Facts& card) noexcept { return card.name.find("GeForce") != std::string::npos; }

const Chip* chip_of(const Facts& card) noexcept {
  const Chip* const found = std::ranges::find(kChips, card.cc_major * 10 + card.cc_minor, &Chip::capability);
  return found == std::end(kChips) ? nullptr : found;
}

Rates by_formula(const Facts& card) noexcept {
  Rates rates{};
  rates[kFp32] = card.cores * 2.0 * card.max_sm_clock_hertz;  // a multiply-add per core and clock
  const Chip* const chip = chip_of(card);
  if (chip == nullptr) return rates;
  const double full = multiprocessors_of(card).value_or(0) * chip->fp16 * card.max_sm_clock_hertz;
  const double fp16 = halved(card) ? full / 2 : full;
  rates[kTf32] = chip->tf32 ? fp16 / 2 : 0;
  rates[kFp16] = fp16;
  rates[kBf16] = chip->tf32 ? fp16 : 0;
  rates[kFp8] = chip->fp8 ? fp16 * 2 : 0;
  rates[kInt8] = chip->int8 ? full * 2 : 0;
  rates[kFp4] = chip->fp4 ? full * 4 : 0;
  return rates;
}

/// The product 66.9 * 1e12 is 6.690000000000001e+13; rounding returns 6.69e13. Data sheets have at most four
/// decimals.
double from_tera(double tera) noexcept { return std::round(tera * 1e4) * 1e8; }

}  // namespace

std::vector<Peak> peaks_of(const Facts& card) {
  const Sheet* const sheet = sheet_of(card);
  const Rates rates = sheet != nullptr ? sheet->tera : by_formula(card);
  std::vector<Peak> peaks;
  for (std::size_t type = 0; type < kTypeCount; ++type) {
    if (rates[type] > 0)
      peaks.push_back(
          {kDtypes[type], sheet != nullptr ? from_tera(rates[type]) : rates[type], sheet != nullptr});
  }
  return peaks;
}

// H100 SXM: 989.4e12 / (132 x 4096) = 1.83 GHz, below its highest clock of 1.98 GHz. The rates of H20 and L40
// are limited by other means than the clock, so theirs come out at half of it or less.
std::optional<double> peak_clock_of(const Facts& card) noexcept {
  constexpr double kLowest = 0.6;
  const Chip* const chip = chip_of(card);
  if (chip == nullptr) return std::nullopt;
  const Sheet* const sheet = sheet_of(card);
  const double peak = sheet != nullptr ? from_tera(sheet->tera[kFp16]) : by_formula(card)[kFp16];
  const double per_clock = multiprocessors_of(card).value_or(0) * chip->fp16 / (halved(card) ? 2 : 1);
  const bool is_clock = per_clock > 0 && peak >= kLowest * per_clock * card.max_sm_clock_hertz && peak > 0;
  return is_clock ? std::optional(peak / per_clock) : std::nullopt;
}

std::optional<double> memory_bandwidth_of(const Facts& card) noexcept {
  const Sheet* const sheet = sheet_of(card);
  if (sheet != nullptr && sheet->giga_bytes > 0) return sheet->giga_bytes * kGiga;
  // NVML's memory clock has two transfers per clock for every type of memory. RTX 4090: 384 bit x 10501 MHz =
  // 1008 GB/s.
  const double bytes = 2 * card.max_memory_clock_hertz * card.bus_width_bits / 8;
  return bytes > 0 ? std::optional(bytes) : std::nullopt;
}

}  // namespace gpumeter::nvidia
