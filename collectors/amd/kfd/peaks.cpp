#include <algorithm>
#include <iterator>

#include "collectors/amd/kfd/topology.hpp"

namespace gpumeter::amd {
namespace {

constexpr double kMegahertz = 1e6;

/// Floating-point operations per compute unit and clock, 0 if no rate is published. Each row is checked
/// against a peak in one of AMD's data sheets, in Tflop/s: units x rate x clock.
struct ComputeRate {
  int first, last;  // gfx_target_version
  double fp32, fp16, bf16;
};
constexpr ComputeRate kComputeRates[] = {
    {90000, 90006, 128, 0, 0},     // Radeon VII: 60 x 128 x 1.8 GHz = 13.8 fp32
    {90008, 90008, 128, 1024, 0},  // MI100: 120 x 128 x 1.502 = 23.1 fp32, x 1024 = 184.6 fp16
    {90010, 90010, 256, 1024,
     1024},  // MI210: 104 x 256 x 1.7 = 45.3 fp32 (packed), x 1024 = 181.0 fp16, bf16
    {90402, 90402, 256, 2048, 2048},  // MI300X: 304 x 256 x 2.1 = 163.4 fp32, x 2048 = 1307.4 fp16, bf16
    {100300, 100399, 128, 0, 0},      // RX 6900 XT: 80 x 128 x 2.25 = 23.0 fp32
    {110000, 110599, 256, 512,
     0},  // RX 7900 XTX: 96 x 256 x 2.5 = 61.4 fp32 (dual issue), x 512 = 122.9 fp16
};

/// Transfers per clock of the memory on all cards of an architecture. Each row is checked against the
/// bandwidth of a data sheet: bus width / 8 x clock x rate. APUs are omitted: the driver does not report
/// their type of memory.
struct MemoryRate {
  int first, last;  // gfx_target_version
  double transfers;
};
constexpr MemoryRate kMemoryRates[] = {
    {90000, 90000, 2},     // HBM2. RX Vega 64: 2048 bit x 945 MHz x 2 = 484 GB/s
    {90004, 90004, 2},     // HBM2, as above
    {90006, 90006, 2},     // HBM2. Radeon VII: 4096 bit x 1000 MHz x 2 = 1024 GB/s
    {90008, 90008, 2},     // HBM2. MI100: 4096 bit x 1200 MHz x 2 = 1229 GB/s
    {90010, 90010, 2},     // HBM2e. MI210: 4096 bit x 1600 MHz x 2 = 1638 GB/s
    {90402, 90402, 4},     // HBM3. MI300X: 8192 bit x 1300 MHz x 4 = 5325 GB/s
    {100100, 100100, 16},  // GDDR6. RX 5700 XT: 256 bit x 875 MHz x 16 = 448 GB/s
    {100102, 100102, 16},  // GDDR6, as above
    {100300, 100302, 16},  // GDDR6. RX 6900 XT: 256 bit x 1000 MHz x 16 = 512 GB/s
    {100304, 100304, 16},  // GDDR6, as above
    {110000, 110002, 16},  // GDDR6. RX 7900 XTX: 384 bit x 1250 MHz x 16 = 960 GB/s
    {120000, 120001, 16},  // GDDR6. RX 9070 XT: 256 bit x 1258 MHz x 16 = 644 GB/s
};

template <class Rate, std::size_t N>
const Rate* rate_of(const Rate (&rates)[N], int target) noexcept {
  const auto covers = [target](const Rate& rate) { return rate.first <= target && target <= rate.last; };
  const Rate* const found = std::find_if(std::begin(rates), std::end(rates), covers);
  return found == std::end(rates) ? nullptr : found;
}

std::optional<double> known(double value) noexcept { return value > 0 ? std::optional(value) : std::nullopt; }

std::optional<double> memory_bandwidth(const KfdNode& card) noexcept {
  const MemoryRate* const rate = rate_of(kMemoryRates, card.target);
  if (rate == nullptr) return std::nullopt;
  return known(card.memory_bits / 8.0 * rate->transfers * card.memory_clock_megahertz * kMegahertz);
}

double operations_per_clock(const ComputeRate& rate, Peak peak) noexcept {
  switch (peak) {
    case Peak::fp32:
      return rate.fp32;
    case Peak::fp16:
      return rate.fp16;
    case Peak::bf16:
      return rate.bf16;
    case Peak::memory:
      break;
  }
  return 0;
}

}  // namespace

std::optional<double> peak_of(const KfdNode& card, Peak peak) noexcept {
  if (peak == Peak::memory) return memory_bandwidth(card);
  const ComputeRate* const rate = rate_of(kComputeRates, card.target);
  if (rate == nullptr) return std::nullopt;
  return known(card.compute_units * operations_per_clock(*rate, peak) * card.clock_megahertz * kMegahertz);
}

}  // namespace gpumeter::amd
