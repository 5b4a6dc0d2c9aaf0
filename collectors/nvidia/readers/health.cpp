#include "collectors/nvidia/readers/health.hpp"

#include <algorithm>
#include <iterator>

namespace gpumeter::nvidia::readers {
namespace {

constexpr unsigned kLocationSram = 7;  // NVML_MEMORY_LOCATION_SRAM
constexpr unsigned kLicensed = 5;      // NVML_GRID_LICENSE_STATE_LICENSED
constexpr unsigned kMostFeatures = std::size(nvml::LicensableFeatures{}.features);

Sample temperature(NvidiaContext& context) noexcept {
  NvmlTarget& gpu = context.gpu();
  auto& answer = gpu.answer<&F::nvmlDeviceGetTemperatureV, nvml::Temperature>();
  const nvml::Temperature& present = answer.ask(gpu.caller);
  const Sample said = sample_of(answer.result(), present.celsius);
  return is_lacking(said.status) ? ask<&F::nvmlDeviceGetTemperature>(gpu.caller, 0) : said;
}

Sample driver_margin(NvidiaContext& context) noexcept {
  NvmlTarget& gpu = context.gpu();
  auto& answer = gpu.answer<&F::nvmlDeviceGetMarginTemperature, nvml::MarginTemperature>();
  const nvml::MarginTemperature& margin = answer.ask(gpu.caller);
  return sample_of(answer.result(), margin.celsius);
}

Sample threshold(NvidiaContext& context, nvml::TemperatureThreshold which) noexcept {
  return ask<&F::nvmlDeviceGetTemperatureThreshold>(context.gpu().caller, which);
}

Sample first_trouble(std::initializer_list<Sample> samples, Sample otherwise) noexcept {
  for (const Sample& sample : samples) {
    if (sample.status != ReadStatus::ok) return sample;
  }
  return otherwise;
}

bool is_heard(NvidiaContext& context) noexcept {
  return context.events().hearing() == DeviceEvents::Hearing::heard;
}

Sample limit_of(NvidiaContext& context, std::uint64_t field) noexcept {
  const Sample offset = read_field(context.gpu().caller, static_cast<unsigned>(field), 0).sample;
  const Sample margin = driver_margin(context);
  const Sample core = temperature(context);
  return first_trouble({offset, margin, core}, Sample::of(core.value + margin.value - offset.value));
}

Sample probe_tlimit(NvidiaContext& context, int handle) noexcept {
  return limit_of(context, context.bound(handle).argument);
}

Sample probe_fans(NvidiaContext& context, int) noexcept {
  return ask<&F::nvmlDeviceGetNumFans>(context.gpu().caller, 0);
}

}  // namespace

// The offsets are constants of the board, so the limit found at attach stays.
Handle bind_tlimit(NvidiaContext& context, const ReadSource& source) {
  const Sample limit = limit_of(context, source.argument);
  if (limit.status != ReadStatus::ok) return absent_for_now<probe_tlimit>(context, source, limit.status);
  if (limit.value < 0) return std::nullopt;
  return context.keep(static_cast<std::uint64_t>(limit.value));
}

Sample read_tlimit(NvidiaContext& context, int handle) noexcept {
  return Sample::of(static_cast<double>(context.bound(handle).argument));
}

Sample read_margin(NvidiaContext& context, int) noexcept {
  const Sample slowdown = threshold(context, nvml::kThresholdSlowdown);
  const Sample highest = threshold(context, nvml::kThresholdGpuMax);
  const Sample core = temperature(context);
  const double limit =
      highest.status == ReadStatus::ok ? std::min(slowdown.value, highest.value) : slowdown.value;
  return first_trouble({slowdown, core}, Sample::of(limit - core.value));
}

Handle bind_ecc(NvidiaContext& context, const ReadSource& source) {
  return bind_probed<read_ecc>(context, source);
}

Handle bind_ecc_part(NvidiaContext& context, const ReadSource& source) {
  const ReadSource whole{source.name, (source.argument & 0xFFFF) | kLocationSram << 16};
  return bind_ecc(context, whole) ? std::nullopt : bind_ecc(context, source);
}

Sample read_ecc(NvidiaContext& context, int handle) noexcept {
  const std::uint64_t argument = context.bound(handle).argument;
  std::uint64_t count = 0;
  const unsigned result = context.gpu().caller.call<&F::nvmlDeviceGetMemoryErrorCounter>(
      static_cast<unsigned>(argument & 0xFF), static_cast<unsigned>(argument >> 8 & 0xFF),
      static_cast<unsigned>(argument >> 16), &count);
  return sample_of(result, static_cast<double>(count));
}

Handle bind_fan(NvidiaContext& context, const ReadSource& source) {
  const Sample fans = ask<&F::nvmlDeviceGetNumFans>(context.gpu().caller, 0);
  if (may_pass(fans.status)) return absent_for_now<probe_fans>(context, source, fans.status);
  if (static_cast<double>(source.argument) < fans.value) return bind_probed<read_fan>(context, source);
  const bool is_only = fans.value == 0 && source.argument == 0;  // a driver that does not say how many
  return is_only ? bind_probed<read_call<&F::nvmlDeviceGetFanSpeed>>(context, source) : std::nullopt;
}

Sample read_fan(NvidiaContext& context, int handle) noexcept {
  const Sample said = read_call<&F::nvmlDeviceGetFanSpeed_v2>(context, handle);
  const bool is_first = context.bound(handle).argument == 0;
  return is_lacking(said.status) && is_first ? read_call<&F::nvmlDeviceGetFanSpeed>(context, handle) : said;
}

Handle bind_fan_rpm(NvidiaContext& context, const ReadSource& source) {
  return bind_probed<read_fan_rpm>(context, source);
}

Sample read_fan_rpm(NvidiaContext& context, int handle) noexcept {
  nvml::FanSpeed speed{nvml::version_of<nvml::FanSpeed>(1),
                       static_cast<unsigned>(context.bound(handle).argument), 0};
  const unsigned result = context.gpu().caller.call<&F::nvmlDeviceGetFanSpeedRPM>(&speed);
  return sample_of(result, speed.rpm);
}

Sample read_license(NvidiaContext& context, int handle) noexcept {
  NvmlTarget& gpu = context.gpu();
  auto& answer = gpu.answer<&F::nvmlDeviceGetGridLicensableFeatures_v4, nvml::LicensableFeatures>();
  const nvml::LicensableFeatures& licence = answer.ask(gpu.caller);
  const ReadStatus status = status_of(answer.result());
  if (status != ReadStatus::ok) return Sample::miss(status);
  if (licence.is_supported == 0 || licence.count == 0) return Sample::miss(ReadStatus::unsupported);
  const unsigned count = std::min(licence.count, kMostFeatures);
  const bool is_licensed = std::any_of(licence.features, licence.features + count, [](const auto& feature) {
    return feature.enabled != 0 && feature.state == kLicensed;
  });
  return Sample::of(is_licensed == (context.bound(handle).argument != 0) ? 1 : 0);
}

Handle bind_confidential(NvidiaContext& context, const ReadSource& source) {
  return bind_probed<read_confidential>(context, source);
}

Sample read_confidential(NvidiaContext& context, int handle) noexcept {
  nvml::ConfidentialState state{};
  const unsigned result = context.gpu().caller.call_plain<&F::nvmlSystemGetConfComputeState>(&state);
  return sample_of(result, (state.feature != 0) == (context.bound(handle).argument != 0) ? 1 : 0);
}

Handle bind_xid(NvidiaContext& context, const ReadSource& source) {
  return (context.event_types() & nvml::kEventXid) != 0 ? Handle(context.keep(source.argument))
                                                        : std::nullopt;
}

Sample read_xid(NvidiaContext& context, int handle) noexcept {
  if (!is_heard(context)) return Sample::miss(ReadStatus::unsupported);
  return Sample::of(static_cast<double>(context.events().xids(context.bound(handle).argument)));
}

Sample read_xid_time(NvidiaContext& context, int handle) noexcept {
  if (!is_heard(context)) return Sample::miss(ReadStatus::unsupported);
  return Sample::of(context.events().last(context.bound(handle).argument));
}

Handle bind_instance_xid(NvidiaContext& context, const ReadSource& source) {
  return context.target().gpu_instance ? bind_xid(context, source) : std::nullopt;
}

Sample read_instance_xid(NvidiaContext& context, int handle) noexcept {
  if (!is_heard(context)) return Sample::miss(ReadStatus::unsupported);
  const NvidiaContext::Bound& bound = context.bound(handle);
  const unsigned instance = *context.target(bound).gpu_instance;
  return Sample::of(static_cast<double>(context.events().xids_of(instance, bound.argument)));
}

Handle bind_event(NvidiaContext& context, const ReadSource& source) {
  const std::uint64_t type = type_of(static_cast<Event>(source.argument));
  const bool is_told = type == kOwnEvent || (context.event_types() & type) != 0;
  return is_told ? Handle(context.keep(source.argument)) : std::nullopt;
}

Sample read_event(NvidiaContext& context, int handle) noexcept {
  const std::uint64_t place = context.bound(handle).argument;
  const bool is_told = type_of(static_cast<Event>(place)) != kOwnEvent;
  if (is_told && !is_heard(context)) return Sample::miss(ReadStatus::unsupported);
  return Sample::of(static_cast<double>(context.events().events(place)));
}

}  // namespace gpumeter::nvidia::readers
