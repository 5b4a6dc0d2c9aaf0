#include "collectors/nvidia/activity_readers.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "collectors/nvidia/throttle_fields.hpp"

namespace gpumeter::nvidia::readers {
namespace {

constexpr unsigned kSmCyclesElapsed = 248;  // NVML_GPM_METRIC_SM_CYCLES_ELAPSED, driver 595

// What stands for a buffer that is dry: the plain reading of the same quantity, in the buffer's unit.
Sample plain_reading(NvidiaContext& context, nvml::SamplingType type) noexcept {
  if (type == nvml::kPowerSamples) return ask<&F::nvmlDeviceGetPowerUsage>(context.gpu().caller, 0);
  auto& answer = context.gpu().answer<&F::nvmlDeviceGetUtilizationRates, nvml::Utilization>();
  const nvml::Utilization& rates = answer.ask(context.gpu().caller);
  return sample_of(answer.result(), type == nvml::kGpuSamples ? rates.gpu : rates.memory);
}

/// The buffer that a handle is of, drained up to this pass.
const SampleBuffer& drained(NvidiaContext& context, int handle) noexcept {
  SampleBuffer& buffer = context.buffer(context.bound(handle).place);
  const SampleBuffer::Moment moment{context.pass(), context.now(), context.elapsed()};
  if (buffer.is_due(moment) && !buffer.drain(context.gpu().caller, moment))
    buffer.stand_in(plain_reading(context, buffer.type()));
  return buffer;
}

/// Counts what `growth` gives once a pass, however many ask.
template <class Growth>
Sample tallied(NvidiaContext& context, NvidiaContext::Tally& tally, Growth growth) noexcept {
  if (std::exchange(tally.pass, context.pass()) != context.pass()) tally.total += growth();
  return Sample::of(tally.total);
}

/// throttle_time()'s source with the ids that this driver has for its fields.
ReadSource numbered_by_driver(NvidiaContext& context, const ReadSource& source) {
  std::array<char, 96> version{};
  context.gpu().caller.call_plain<&F::nvmlSystemGetDriverVersion>(version.data(),
                                                                  static_cast<unsigned>(version.size() - 1));
  const unsigned first = throttle_field(static_cast<unsigned>(source.argument & 0xFFFF), version.data());
  const unsigned second =
      throttle_field(static_cast<unsigned>(source.argument >> 16 & 0xFFFF), version.data());
  return {source.name, source.argument >> 32 << 32 | std::uint64_t{second} << 16 | first};
}

/// Whether a reason of the mask was seen in this pass and in the one before.
bool has_held(NvidiaContext& context, std::uint64_t mask) noexcept {
  const Sample reasons = context.event_reasons();
  return reasons.status == ReadStatus::ok &&
         (static_cast<std::uint64_t>(reasons.value) & context.reasons_before() & mask) != 0;
}

double throttle_growth(NvidiaContext& context, double growth, bool held) noexcept {
  context.throttle_unit().learn(growth, context.elapsed(), held);
  return context.throttle_unit().seconds(growth);
}

}  // namespace

Handle bind_samples(NvidiaContext& context, const ReadSource& source) {
  const auto type = static_cast<nvml::SamplingType>(source.argument);
  const std::optional<int> buffer = context.buffer_of(type);
  return buffer ? Handle(context.keep(source.argument, *buffer)) : std::nullopt;
}

Sample read_sampled_total(NvidiaContext& context, int handle) noexcept {
  return drained(context, handle).total();
}
Sample read_sampled_max(NvidiaContext& context, int handle) noexcept {
  return drained(context, handle).max();
}
Sample read_sampled_min(NvidiaContext& context, int handle) noexcept {
  return drained(context, handle).min();
}

Handle bind_gpm(NvidiaContext& context, const ReadSource& source) {
  const std::optional<int> place = context.target().gpm.add(static_cast<unsigned>(source.argument));
  return place ? Handle(context.keep(source.argument, *place)) : std::nullopt;
}

Sample read_gpm(NvidiaContext& context, int handle) noexcept {
  const NvidiaContext::Bound& bound = context.bound(handle);
  return context.target(bound).gpm.read(bound.place);
}

// The argument of what is kept becomes the tally's place.
Handle bind_gpm_total(NvidiaContext& context, const ReadSource& source) {
  const std::optional<int> place = context.target().gpm.add(static_cast<unsigned>(source.argument));
  return place ? Handle(context.keep(static_cast<std::uint64_t>(context.keep_tally()), *place))
               : std::nullopt;
}

Sample read_gpm_total(NvidiaContext& context, int handle) noexcept {
  const Sample rate = read_gpm(context, handle);
  if (rate.status != ReadStatus::ok) return rate;
  NvidiaContext::Tally& tally = context.tally(context.bound(handle).argument);
  return tallied(context, tally, [&] { return rate.value * to_seconds(context.elapsed()); });
}

// Two metrics behind one another: the active cycles at the place that is kept, all cycles right after.
Handle bind_gpm_cycles(NvidiaContext& context, const ReadSource& source) {
  GpmSampler& gpm = context.target().gpm;
  const std::optional<int> active = gpm.add(static_cast<unsigned>(source.argument));
  if (!active || !gpm.add(kSmCyclesElapsed)) return std::nullopt;
  return context.keep(static_cast<std::uint64_t>(context.keep_tally()), *active);
}

Sample read_gpm_cycles(NvidiaContext& context, int handle) noexcept {
  const NvidiaContext::Bound& bound = context.bound(handle);
  GpmSampler& gpm = context.target(bound).gpm;
  const Sample active = gpm.read(bound.place);
  const Sample all = gpm.read(bound.place + 1);
  if (active.status != ReadStatus::ok || all.status != ReadStatus::ok)
    return active.status == ReadStatus::ok ? all : active;
  NvidiaContext::Tally& tally = context.tally(bound.argument);
  return tallied(context, tally, [&] {
    const double grown = tally.growth[0].of(active.value);
    const double passed = tally.growth[1].of(all.value);
    return passed > 0 ? std::min(grown / passed, 1.0) * to_seconds(context.elapsed()) : 0;
  });
}

Handle bind_reasons(NvidiaContext& context, const ReadSource& source) {
  if (source.argument == 0) return std::nullopt;  // it is only in the counters
  NvmlCaller& gpu = context.gpu().caller;
  Sample supported = ask<&F::nvmlDeviceGetSupportedClocksEventReasons>(gpu, 0);
  if (supported.status != ReadStatus::ok)
    supported = ask<&F::nvmlDeviceGetSupportedClocksThrottleReasons>(gpu, 0);
  const bool is_known = supported.status != ReadStatus::ok ||
                        (static_cast<std::uint64_t>(supported.value) & source.argument) != 0;
  return is_known ? bind_probed<read_reasons>(context, source) : std::nullopt;
}

// HW_SLOWDOWN holds together with what it comes from; alone it is a cause of its own.
Sample read_reasons(NvidiaContext& context, int handle) noexcept {
  constexpr std::uint64_t kOfHwSlowdown = nvml::kReasonHwThermal | nvml::kReasonHwPowerBrake;
  const Sample all = context.event_reasons();
  if (all.status != ReadStatus::ok) return all;
  auto held = static_cast<std::uint64_t>(all.value);
  if ((held & kOfHwSlowdown) != 0) held &= ~std::uint64_t{nvml::kReasonHwSlowdown};
  return Sample::of((held & context.bound(handle).argument) != 0 ? 1 : 0);
}

Handle bind_throttle_time(NvidiaContext& context, const ReadSource& row) {
  const ReadSource source = numbered_by_driver(context, row);
  constexpr Tier kTier = Tier::fast;
  FieldBatch& batch = context.fields(kTier);
  const auto first = static_cast<unsigned>(source.argument & 0xFFFF);
  const auto second = static_cast<unsigned>(source.argument >> 16 & 0xFFFF);
  if (first == 0) return std::nullopt;  // it is only in the reasons
  for (const unsigned field : {first, second}) {
    const bool lacks =
        field != 0 && read_field(context.gpu().caller, field, 0).sample.status != ReadStatus::ok;
    if (lacks) return std::nullopt;
  }
  const int place = batch.add(first, 0);
  if (second != 0) batch.add(second, 0);
  const std::uint64_t mask = source.argument >> 32;
  const auto tally = static_cast<std::uint64_t>(context.keep_tally());
  return context.keep(mask << 32 | std::uint64_t{second != 0} << 16 | tally, place);
}

Sample read_throttle_time(NvidiaContext& context, int handle) noexcept {
  const NvidiaContext::Bound& bound = context.bound(handle);
  const bool is_pair = (bound.argument >> 16 & 1) != 0;
  FieldBatch& batch = context.fields(Tier::fast);
  const Sample first = batch.read(context.gpu().caller, bound.place);
  const Sample second = is_pair ? batch.read(context.gpu().caller, bound.place + 1) : Sample::of(0);
  if (first.status != ReadStatus::ok || second.status != ReadStatus::ok)
    return first.status != ReadStatus::ok ? first : second;
  const bool held = has_held(context, bound.argument >> 32);
  NvidiaContext::Tally& tally = context.tally(bound.argument & 0xFFFF);
  return tallied(context, tally, [&] {
    const double seconds = throttle_growth(context, tally.growth[0].of(first.value), held) +
                           throttle_growth(context, tally.growth[1].of(second.value), held);
    return std::min(seconds, to_seconds(context.elapsed()));
  });
}

}  // namespace gpumeter::nvidia::readers
