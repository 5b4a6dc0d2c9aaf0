#include "collectors/nvidia/readers/activity.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "collectors/nvidia/readers/throttle_fields.hpp"

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
  return {source.name, std::uint64_t{second} << 16 | first};
}

// Of every field (nvml.h 13.3: "All counters are in nanoseconds"). nvidia-smi prints microseconds, but a
// counter's growth cannot tell the units apart: 1000000 a second is a reason that held all the time, or for a
// thousandth of it.
constexpr double kThrottleUnit = 1e-9;

Sample probe_samples(NvidiaContext& context, int handle) noexcept {
  SampleBuffer fresh(static_cast<nvml::SamplingType>(context.bound(handle).argument));
  const ReadStatus status = fresh.open(context.gpu().caller);
  return status == ReadStatus::ok ? Sample::of(0) : Sample::miss(status);
}

Sample probe_gpm(NvidiaContext& context, int handle) noexcept {
  const NvmlTarget& target = context.target(context.bound(handle));
  GpmSampler fresh;
  fresh.open(context.gpu().caller, target.gpu_instance);
  return fresh.opened() == ReadStatus::ok ? Sample::of(0) : Sample::miss(fresh.opened());
}

/// A metric that has no place. Where the sampler could not be opened, all of them await that.
Handle without_gpm(NvidiaContext& context) {
  if (may_pass(context.target().gpm.opened()))
    context.unsettled().await(context.key_of({}), probe_gpm, context.keep(0));
  return std::nullopt;
}

/// The first of the two that is not well, else nothing to say.
ReadStatus trouble_of(const FieldReading& first, const FieldReading& second) noexcept {
  return first.sample.status != ReadStatus::ok ? first.sample.status : second.sample.status;
}

/// The fields of bind_throttle_time()'s argument, asked for by themselves.
ReadStatus throttle_fields(NvidiaContext& context, std::uint64_t fields) noexcept {
  NvmlCaller& gpu = context.gpu().caller;
  const auto second = static_cast<unsigned>(fields >> 16 & 0xFFFF);
  const FieldReading first = read_field(gpu, static_cast<unsigned>(fields & 0xFFFF), 0);
  return second == 0 ? first.sample.status : trouble_of(first, read_field(gpu, second, 0));
}

Sample probe_throttle_time(NvidiaContext& context, int handle) noexcept {
  const ReadStatus status = throttle_fields(context, context.bound(handle).argument);
  return status == ReadStatus::ok ? Sample::of(0) : Sample::miss(status);
}

}  // namespace

Handle bind_samples(NvidiaContext& context, const ReadSource& source) {
  const NvidiaContext::OpenedBuffer buffer =
      context.buffer_of(static_cast<nvml::SamplingType>(source.argument));
  if (buffer.status == ReadStatus::ok) return context.keep(source.argument, buffer.place);
  return absent_for_now<probe_samples>(context, source, buffer.status);
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
  return place ? settled<read_gpm>(context, context.keep(source.argument, *place), source)
               : without_gpm(context);
}

Sample read_gpm(NvidiaContext& context, int handle) noexcept {
  const NvidiaContext::Bound& bound = context.bound(handle);
  return context.target(bound).gpm.read(bound.place);
}

// The argument of what is kept becomes the tally's place.
Handle bind_gpm_total(NvidiaContext& context, const ReadSource& source) {
  const std::optional<int> place = context.target().gpm.add(static_cast<unsigned>(source.argument));
  if (!place) return without_gpm(context);
  const int handle = context.keep(static_cast<std::uint64_t>(context.keep_tally()), *place);
  return settled<read_gpm>(context, handle, source);
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
  if (!active || !gpm.add(kSmCyclesElapsed)) return without_gpm(context);
  const int handle = context.keep(static_cast<std::uint64_t>(context.keep_tally()), *active);
  return settled<read_gpm>(context, handle, source);
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
  const ReadStatus status = throttle_fields(context, source.argument);
  if (status != ReadStatus::ok) return absent_for_now<probe_throttle_time>(context, source, status);
  const int place = batch.add(first, 0);
  if (second != 0) batch.add(second, 0);
  const auto tally = static_cast<std::uint64_t>(context.keep_tally());
  return context.keep(std::uint64_t{second != 0} << 16 | tally, place);
}

Sample read_throttle_time(NvidiaContext& context, int handle) noexcept {
  const NvidiaContext::Bound& bound = context.bound(handle);
  const bool is_pair = (bound.argument >> 16 & 1) != 0;
  FieldBatch& batch = context.fields(Tier::fast);
  const Sample first = batch.read(context.gpu().caller, bound.place);
  const Sample second = is_pair ? batch.read(context.gpu().caller, bound.place + 1) : Sample::of(0);
  if (first.status != ReadStatus::ok || second.status != ReadStatus::ok)
    return first.status != ReadStatus::ok ? first : second;
  NvidiaContext::Tally& tally = context.tally(bound.argument & 0xFFFF);
  return tallied(context, tally, [&] {
    const double grown = tally.growth[0].of(first.value) + tally.growth[1].of(second.value);
    return std::min(grown * kThrottleUnit, to_seconds(context.elapsed()));
  });
}

}  // namespace gpumeter::nvidia::readers
