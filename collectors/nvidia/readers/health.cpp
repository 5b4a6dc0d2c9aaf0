#include <algorithm>
#include <iterator>

#include "collectors/nvidia/readers.hpp"

namespace gpumeter::nvidia {

using namespace readers;

namespace {

constexpr unsigned kLocationSram = 7;  // NVML_MEMORY_LOCATION_SRAM
constexpr unsigned kLicensed = 5;      // NVML_GRID_LICENSE_STATE_LICENSED
constexpr unsigned kMostFeatures = std::size(nvml::LicensableFeatures{}.features);

/// The core's temperature, by the call that the library has.
class CoreTemperature {
 public:
  explicit CoreTemperature(NvmlTarget& gpu)
      : gpu_(gpu.caller), answer_(gpu.answer<&F::nvmlDeviceGetTemperatureV>()) {}
  Sample operator()() const noexcept {
    const nvml::Temperature& present = answer_.ask();
    const Sample said = sample_of(answer_.result(), present.celsius);
    return is_lacking(said.status) ? ask<&F::nvmlDeviceGetTemperature>(gpu_, 0) : said;
  }

 private:
  NvmlCaller& gpu_;
  Answer<&F::nvmlDeviceGetTemperatureV>& answer_;
};

Sample first_trouble(std::initializer_list<Sample> samples, Sample otherwise) noexcept {
  for (const Sample& sample : samples) {
    if (sample.status != ReadStatus::ok) return sample;
  }
  return otherwise;
}

/// Reads a count of `events`; unsupported while nothing reports such events.
template <bool (DeviceEvents::*kIsKnown)() const noexcept, class Count>
Reader if_known(const DeviceEvents& events, Count count) {
  return [&events, count] {
    return (events.*kIsKnown)() ? Sample::of(static_cast<double>(count(events)))
                                : Sample::miss(ReadStatus::unsupported);
  };
}

bool has_xids(const NvidiaContext& context) noexcept {
  return (context.event_types() & nvml::kEventXid) != 0;
}

Reader peak_of(const NvidiaContext& context, const ReadSource& source, bool from_table) {
  for (const Peak& peak : context.peaks()) {
    if (peak.dtype == kDtypes[source.argument] && peak.from_table == from_table) return constant(peak.flops);
  }
  return {};
}

}  // namespace

// The offsets are constants of the board, so the limit found at attach stays valid.
Reader tlimit(NvidiaContext& context, const ReadSource& source) {
  NvmlTarget& gpu = context.gpu();
  const auto probe = [&gpu, &margin = gpu.answer<&F::nvmlDeviceGetMarginTemperature>(),
                      temperature = CoreTemperature(gpu), field = static_cast<unsigned>(source.argument)] {
    const Sample offset = read_field(gpu.caller, field, 0).sample;
    const int celsius = margin.ask().celsius;
    const Sample core = temperature();
    return first_trouble({offset, sample_of(margin.result(), celsius), core},
                         Sample::of(core.value + celsius - offset.value));
  };
  const Sample limit = probe();
  if (limit.status != ReadStatus::ok) return absent_for_now(context, source, limit.status, probe);
  return limit.value < 0 ? Reader() : constant(limit.value);
}

Reader margin(NvidiaContext& context, const ReadSource& source) {
  NvmlTarget& gpu = context.gpu();
  return probed(context, source, [&gpu = gpu.caller, temperature = CoreTemperature(gpu)] {
    const Sample slowdown = ask<&F::nvmlDeviceGetTemperatureThreshold>(gpu, nvml::kThresholdSlowdown);
    const Sample highest = ask<&F::nvmlDeviceGetTemperatureThreshold>(gpu, nvml::kThresholdGpuMax);
    const Sample core = temperature();
    const double limit =
        highest.status == ReadStatus::ok ? std::min(slowdown.value, highest.value) : slowdown.value;
    return first_trouble({slowdown, core}, Sample::of(limit - core.value));
  });
}

Reader readers::bind_ecc(NvidiaContext& context, const ReadSource& source) {
  return probed(context, source, [&gpu = context.target().caller, argument = source.argument] {
    std::uint64_t count = 0;
    const unsigned result = gpu.call<&F::nvmlDeviceGetMemoryErrorCounter>(
        static_cast<unsigned>(argument & 0xFF), static_cast<unsigned>(argument >> 8 & 0xFF),
        static_cast<unsigned>(argument >> 16), &count);
    return sample_of(result, static_cast<double>(count));
  });
}

Reader readers::bind_ecc_part(NvidiaContext& context, const ReadSource& source) {
  const ReadSource whole{source.name, (source.argument & 0xFFFF) | kLocationSram << 16};
  return bind_ecc(context, whole) ? Reader() : bind_ecc(context, source);
}

Reader fan(NvidiaContext& context, const ReadSource& source) {
  NvmlCaller& gpu = context.gpu().caller;
  const auto count = [&gpu] { return ask<&F::nvmlDeviceGetNumFans>(gpu); };
  const Sample fans = count();
  if (may_pass(fans.status)) return absent_for_now(context, source, fans.status, count);
  const auto only = [&gpu] { return ask<&F::nvmlDeviceGetFanSpeed>(gpu); };
  if (static_cast<double>(source.argument) >= fans.value) {
    const bool is_only =
        fans.value == 0 && source.argument == 0;  // a driver that does not report the number of fans
    return is_only ? probed(context, source, only) : Reader();
  }
  return probed(context, source, [&gpu, only, place = source.argument] {
    const Sample said = ask<&F::nvmlDeviceGetFanSpeed_v2>(gpu, place);
    return is_lacking(said.status) && place == 0 ? only() : said;
  });
}

Reader fan_rpm(NvidiaContext& context, const ReadSource& source) {
  return probed(context, source,
                [&gpu = context.gpu().caller, place = static_cast<unsigned>(source.argument)] {
                  nvml::FanSpeed speed{.fan = place};
                  const unsigned result = gpu.call<&F::nvmlDeviceGetFanSpeedRPM>(&speed);
                  return sample_of(result, speed.rpm);
                });
}

Reader licensed(NvidiaContext& context, const ReadSource& source) {
  auto& answer = context.gpu().answer<&F::nvmlDeviceGetGridLicensableFeatures_v4>();
  return probed(context, source, [&answer, wanted = source.argument != 0] {
    const nvml::LicensableFeatures& licence = answer.ask();
    const ReadStatus status = status_of(answer.result());
    if (status != ReadStatus::ok) return Sample::miss(status);
    if (licence.is_supported == 0 || licence.count == 0) return Sample::miss(ReadStatus::unsupported);
    const unsigned count = std::min(licence.count, kMostFeatures);
    const bool is_licensed = std::any_of(licence.features, licence.features + count, [](const auto& feature) {
      return feature.enabled != 0 && feature.state == kLicensed;
    });
    return Sample::of(is_licensed == wanted ? 1 : 0);
  });
}

// With protected PCIe the feature itself is off, and the mode of several GPUs says that they are protected.
Reader confidential(NvidiaContext& context, const ReadSource& source) {
  return probed(context, source, [&gpu = context.gpu().caller, wanted = source.argument != 0] {
    nvml::ConfidentialSettings settings{};
    unsigned result = gpu.call_plain<&F::nvmlSystemGetConfComputeSettings>(&settings);
    if (result == nvml::kSuccess) {
      const bool is_on = settings.feature != 0 || settings.multi_gpu != nvml::kMultiGpuNone;
      return Sample::of(is_on == wanted ? 1 : 0);
    }
    nvml::ConfidentialState state{};
    result = gpu.call_plain<&F::nvmlSystemGetConfComputeState>(&state);
    return sample_of(result, (state.feature != 0) == wanted ? 1 : 0);
  });
}

Reader multi_gpu(NvidiaContext& context, const ReadSource& source) {
  return probed(context, source, [&gpu = context.gpu().caller, wanted = source.argument] {
    nvml::ConfidentialSettings settings{};
    const unsigned result = gpu.call_plain<&F::nvmlSystemGetConfComputeSettings>(&settings);
    return sample_of(result, settings.multi_gpu == wanted ? 1 : 0);
  });
}

Reader xid_count(NvidiaContext& context, const ReadSource& source) {
  if (!has_xids(context)) return {};
  return if_known<&DeviceEvents::counts_xids>(
      context.events(), [place = source.argument](const DeviceEvents& events) { return events.xids(place); });
}

Reader xid_time(NvidiaContext& context, const ReadSource& source) {
  if (!has_xids(context)) return {};
  return if_known<&DeviceEvents::counts_xids>(
      context.events(), [place = source.argument](const DeviceEvents& events) { return events.last(place); });
}

Reader instance_xid_count(NvidiaContext& context, const ReadSource& source) {
  const std::optional<unsigned> instance = context.target().gpu_instance;
  if (!instance || !has_xids(context)) return {};
  return if_known<&DeviceEvents::counts_xids>(
      context.events(), [instance = *instance, place = source.argument](const DeviceEvents& events) {
        return events.xids_of(instance, place);
      });
}

Reader event_count(NvidiaContext& context, const ReadSource& source) {
  const std::uint64_t type = kEvents[source.argument].type;
  const auto count = [place = source.argument](const DeviceEvents& events) { return events.events(place); };
  if (type == kOwnEvent) {
    return [&events = context.events(), count] { return Sample::of(static_cast<double>(count(events))); };
  }
  return (context.event_types() & type) != 0 ? if_known<&DeviceEvents::is_reported>(context.events(), count)
                                             : Reader();
}

Reader operational_overflows(NvidiaContext& context, const ReadSource&) {
  if (!context.gpu().caller.has<&F::nvmlEventSetRegisterGpuOperationalEvents_v1>()) return {};
  return [&counts = context.events().operational()] { return counts.overflows(); };
}

Reader peak_in_table(NvidiaContext& context, const ReadSource& source) {
  return peak_of(context, source, true);
}

Reader peak_by_formula(NvidiaContext& context, const ReadSource& source) {
  return peak_of(context, source, false);
}

Reader unified_memory(NvidiaContext& context, const ReadSource& source) {
  HostMemoryFile* const memory = context.unified_memory();
  if (memory == nullptr) return {};
  return probed(context, source, [memory, part = static_cast<MemoryPart>(source.argument)] {
    const auto& [host, status] = memory->read();
    if (status != ReadStatus::ok) return Sample::miss(status);
    if (part == MemoryPart::size) return Sample::of(host.total);
    return Sample::of(part == MemoryPart::free ? host.available : host.total - host.available);
  });
}

Reader peak_bandwidth(NvidiaContext& context, const ReadSource&) {
  return context.peak_bandwidth() ? constant(*context.peak_bandwidth()) : Reader();
}

}  // namespace gpumeter::nvidia
