#include <algorithm>
#include <cmath>
#include <optional>

#include "collectors/api/catalog.hpp"
#include "collectors/nvidia/readers.hpp"

/// GPM's monotonic counts of cycles (driver 595 and later), as seconds and as cycles.
namespace gpumeter::nvidia {

using namespace readers;

namespace {

constexpr unsigned kElapsed = 248;  // NVML_GPM_METRIC_SM_CYCLES_ELAPSED
constexpr unsigned kActive = 249;   // NVML_GPM_METRIC_SM_CYCLES_ACTIVE
constexpr double kMega = 1e6;
constexpr double kPercent = 100;

/// A count of the pass's growth: `convert` takes the metric's growth and that of all cycles.
template <class Convert>
Reader counted(NvidiaContext& context, const ReadSource& source, Convert convert) {
  GpmSampler& gpm = context.target().gpm;
  const std::optional<int> own = gpm.add(static_cast<unsigned>(source.argument));
  const std::optional<int> all = gpm.add(kElapsed);
  if (!own || !all) return without_gpm(context);
  const auto read = [&gpm, place = *own] { return gpm.read(place); };
  if (!is_admitted(context, source, read().status, read)) return {};
  return CountingReader(Tally(), [&gpm, own = *own, all = *all, convert](Settled<Tally>& settled) {
    const Sample cycles = gpm.read(own);
    const Sample elapsed = gpm.read(all);
    if (cycles.status != ReadStatus::ok) return cycles;
    if (elapsed.status != ReadStatus::ok) return elapsed;
    Tally& tally = settled.current();
    const double passed = tally.growth[1].of(elapsed.value);
    return tally.add(convert(tally.growth[0].of(cycles.value), passed));
  });
}

// No document states whether a count is the multiprocessors' mean or their sum. The first pass that is within
// a tenth of one of them by the present clock decides. While the clock is gated, it is near neither.
void find_unit(NvidiaContext& context, double passed) noexcept {
  constexpr double kTolerance = 0.1;
  if (context.cycle_unit() > 0 || context.elapsed() == Nanoseconds{0}) return;
  const Sample clock = ask<&F::nvmlDeviceGetClockInfo>(context.gpu().caller, nvml::kClockSm);
  const double cycles = clock.value * kMega * to_seconds(context.elapsed());
  if (clock.status != ReadStatus::ok || cycles <= 0) return;
  for (const double unit : {1.0, context.multiprocessors()}) {
    if (std::abs(passed - unit * cycles) < kTolerance * unit * cycles) context.note_cycle_unit(unit);
  }
}

/// Binds once the unit is known: the GPU is bound again then.
Reader in_units(NvidiaContext& context, const ReadSource& source, double counts) {
  if (counts <= 0) return {};
  return counted(context, source, [counts](double grown, double) { return grown / counts; });
}

Reader gpm_count(NvidiaContext& context, const ReadSource& source) {
  return in_units(context, source, context.cycle_unit());
}

Reader gpm_tensor_peak(NvidiaContext& context, const ReadSource& source) {
  return in_units(context, source, context.cycle_unit() * context.peak_clock().value_or(0));
}

// The share is the mean since the previous pass; the clock is that at its end.
Reader gpm_tensor_peak_sampled(NvidiaContext& context, const ReadSource& source) {
  const std::optional<double> peak = context.peak_clock();
  if (!peak) return {};
  GpmSampler& gpm = context.target().gpm;
  const std::optional<int> place = gpm.add(static_cast<unsigned>(source.argument));
  if (!place) return without_gpm(context);
  const auto read = [&gpm, place = *place] { return gpm.read(place); };
  if (!is_admitted(context, source, read().status, read)) return {};
  return CountingReader(Tally(), [&context, read, peak = *peak](Settled<Tally>& settled) {
    const Sample share = read();
    const Sample clock = ask<&F::nvmlDeviceGetClockInfo>(context.gpu().caller, nvml::kClockSm);
    if (share.status != ReadStatus::ok) return share;
    if (clock.status != ReadStatus::ok) return clock;
    const double of_peak = std::min(share.value / kPercent, 1.0) * clock.value * kMega / peak;
    return settled.current().add(of_peak * to_seconds(context.elapsed()));
  });
}

constexpr Traits kIntegrated{.min = 0, .counted_by = "integrated"};

// clang-format off
constexpr auto kRows = std::to_array<Row>({
    {&catalog::cycles, {}, {gpm_count, "GPM SM_CYCLES_ELAPSED", 248}, 1, Tier::fast, {}, kPositive},
    {&catalog::active_cycles, {}, {gpm_count, "GPM SM_CYCLES_ACTIVE", 249}, 1, Tier::fast, {}, kPositive},
    {&catalog::pipe_cycles, {"pipe", "tensor"}, {gpm_count, "GPM MMA_CYCLES_ACTIVE", 250}, 1, Tier::fast, {}, kPositive},
    {&catalog::pipe_cycles, {"pipe", "fp64"}, {gpm_count, "GPM FP64_CYCLES_ACTIVE", 258}, 1, Tier::fast, {}, kPositive},
    {&catalog::pipe_cycles, {"pipe", "fp32"}, {gpm_count, "GPM FP32_CYCLES_ACTIVE", 259}, 1, Tier::fast, {}, kPositive},
    {&catalog::pipe_cycles, {"pipe", "fp16"}, {gpm_count, "GPM FP16_CYCLES_ACTIVE", 260}, 1, Tier::fast, {}, kPositive},
    {&catalog::pipe_cycles, {"pipe", "int"}, {gpm_count, "GPM INTEGER_CYCLES_ACTIVE", 257}, 1, Tier::fast, {}, kPositive},
    {&catalog::tensor_cycles, {"kind", "fp64"}, {gpm_count, "GPM DFMA_CYCLES_ACTIVE", 254}, 1, Tier::fast, {}, kPositive},
    {&catalog::tensor_cycles, {"kind", "fp64"}, {gpm_count, "GPM DMMA_CYCLES_ACTIVE", 251}, 1, Tier::fast, {}, kPositive},
    {&catalog::tensor_cycles, {"kind", "fp16"}, {gpm_count, "GPM HMMA_CYCLES_ACTIVE", 252}, 1, Tier::fast, {}, kPositive},
    {&catalog::tensor_cycles, {"kind", "int"}, {gpm_count, "GPM IMMA_CYCLES_ACTIVE", 253}, 1, Tier::fast, {}, kPositive},
    {&catalog::tensor_peak_seconds, {}, {gpm_tensor_peak, "GPM MMA_CYCLES_ACTIVE", 250}, 1, Tier::fast, {}, kPositive},
    {&catalog::tensor_peak_seconds, {}, {gpm_tensor_peak_sampled, "GPM any tensor", 5}, 1, Tier::fast, {}, kIntegrated},
});
// clang-format on
static_assert(valid_table(kRows));

}  // namespace

Reader gpm_cycles(NvidiaContext& context, const ReadSource& source) {
  const bool decides = source.argument == kActive && &context.target() == &context.gpu();
  return counted(context, source, [&context, decides](double grown, double passed) {
    if (decides) find_unit(context, passed);
    return passed > 0 ? std::min(grown / passed, 1.0) * to_seconds(context.elapsed()) : 0;
  });
}

std::span<const Row> cycle_rows() noexcept { return kRows; }

}  // namespace gpumeter::nvidia
