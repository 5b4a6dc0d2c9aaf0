#include "tests/fakes/nvml/call.hpp"

// Utilisation, memory, power, temperatures, clocks.

namespace gpumeter::fake_nvml {
namespace {

using Out = unsigned*;

constexpr unsigned kEnginePeriod = 167000;  // microseconds; the default of `engines.period_us`

unsigned engine(const char* function, nvml::Device device, const char* path, Out percent, Out period) {
  return on_device(function, device, [&](const Call& call) -> unsigned {
    if (period == nullptr) return nvml::kInvalidArgument;
    if (call.read("engines.period_us", period) != nvml::kSuccess) *period = kEnginePeriod;
    return call.read(path, percent);
  });
}

/// Reads one item of a list that NVML numbers: PREFIX.NAME.
template <std::size_t Count>
unsigned by_number(const char* function, nvml::Device device, const char* prefix,
                   const char* const (&names)[Count], unsigned number, Out out) {
  return on_device(function, device, [&](const Call& call) -> unsigned {
    if (number >= Count) return nvml::kInvalidArgument;
    return call.read(std::string(prefix) + names[number], out);
  });
}

constexpr const char* kClocks[] = {"graphics", "sm", "memory", "video"};
// NVML_TEMPERATURE_THRESHOLD_*
constexpr const char* kThresholds[] = {"shutdown",     "slowdown",         "memory_max",   "gpu_max",
                                       "acoustic_min", "acoustic_current", "acoustic_max", "gps_current"};

}  // namespace

#define NUMBER_GETTER(function, path, type)                            \
  FAKE_NVML_EXPORT unsigned function(nvml::Device device, type* out) { \
    return one_number(#function, device, path, out);                   \
  }
#define ENGINE_GETTER(function, path)                                                            \
  FAKE_NVML_EXPORT unsigned function(nvml::Device device, unsigned* percent, unsigned* period) { \
    return engine(#function, device, path, percent, period);                                     \
  }

NUMBER_GETTER(nvmlDeviceGetPowerUsage, "power.draw", unsigned)
NUMBER_GETTER(nvmlDeviceGetTotalEnergyConsumption, "power.energy", std::uint64_t)
NUMBER_GETTER(nvmlDeviceGetEnforcedPowerLimit, "power.limit", unsigned)
NUMBER_GETTER(nvmlDeviceGetPowerManagementDefaultLimit, "power.default_limit", unsigned)
NUMBER_GETTER(nvmlDeviceGetPerformanceState, "clocks.pstate", unsigned)
NUMBER_GETTER(nvmlDeviceGetCurrentClocksEventReasons, "clocks.reasons", std::uint64_t)
NUMBER_GETTER(nvmlDeviceGetCurrentClocksThrottleReasons, "clocks.reasons", std::uint64_t)
NUMBER_GETTER(nvmlDeviceGetSupportedClocksEventReasons, "clocks.supported_reasons", std::uint64_t)
NUMBER_GETTER(nvmlDeviceGetSupportedClocksThrottleReasons, "clocks.supported_reasons", std::uint64_t)

ENGINE_GETTER(nvmlDeviceGetEncoderUtilization, "engines.encoder")
ENGINE_GETTER(nvmlDeviceGetDecoderUtilization, "engines.decoder")
ENGINE_GETTER(nvmlDeviceGetJpgUtilization, "engines.jpeg")
ENGINE_GETTER(nvmlDeviceGetOfaUtilization, "engines.ofa")

FAKE_NVML_EXPORT unsigned nvmlDeviceGetUtilizationRates(nvml::Device device, nvml::Utilization* out) {
  return on_device("nvmlDeviceGetUtilizationRates", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    return first_error(call.read("utilization.gpu", &out->gpu),
                       call.read("utilization.memory", &out->memory));
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetMemoryInfo(nvml::Device device, nvml::Memory* out) {
  return on_device("nvmlDeviceGetMemoryInfo", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    std::uint64_t reserved = 0;
    call.read("memory.reserved", &reserved);  // version 1 counts it as used
    const unsigned error =
        first_error(call.read("memory.total", &out->total), call.read("memory.free", &out->free),
                    call.read("memory.used", &out->used));
    out->used += reserved;
    return error;
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetMemoryInfo_v2(nvml::Device device, nvml::MemoryV2* out) {
  return on_device("nvmlDeviceGetMemoryInfo_v2", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    const bool known = call.scenario().layout("memory", 2) >= 2;
    if (!known || out->version != nvml::version_of<nvml::MemoryV2>(2)) return nvml::kArgumentVersionMismatch;
    if (!call.says("memory.reserved")) out->reserved = 0;
    return first_error(
        call.says("memory.reserved") ? call.read("memory.reserved", &out->reserved) : nvml::kSuccess,
        call.read("memory.total", &out->total), call.read("memory.free", &out->free),
        call.read("memory.used", &out->used));
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetBAR1MemoryInfo(nvml::Device device, nvml::Bar1Memory* out) {
  return on_device("nvmlDeviceGetBAR1MemoryInfo", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    return first_error(call.read("bar1.total", &out->total), call.read("bar1.free", &out->free),
                       call.read("bar1.used", &out->used));
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetPowerManagementLimitConstraints(nvml::Device device, Out low,
                                                                       Out high) {
  return on_device("nvmlDeviceGetPowerManagementLimitConstraints", device, [&](const Call& call) {
    return first_error(call.read("power.min_limit", low), call.read("power.max_limit", high));
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetTemperatureV(nvml::Device device, nvml::Temperature* out) {
  return on_device("nvmlDeviceGetTemperatureV", device, [&](const Call& call) -> unsigned {
    if (out == nullptr || out->sensor != 0) return nvml::kInvalidArgument;
    if (out->version != nvml::version_of<nvml::Temperature>(1)) return nvml::kArgumentVersionMismatch;
    return call.read("temperature.gpu", &out->celsius);
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetTemperature(nvml::Device device, unsigned sensor, Out out) {
  return sensor != 0 ? unsigned{nvml::kInvalidArgument}
                     : one_number("nvmlDeviceGetTemperature", device, "temperature.gpu", out);
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetTemperatureThreshold(nvml::Device device, unsigned which, Out out) {
  return by_number("nvmlDeviceGetTemperatureThreshold", device, "temperature.thresholds.", kThresholds, which,
                   out);
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetMarginTemperature(nvml::Device device, nvml::MarginTemperature* out) {
  return on_device("nvmlDeviceGetMarginTemperature", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    if (out->version != nvml::version_of<nvml::MarginTemperature>(1)) return nvml::kArgumentVersionMismatch;
    return call.read("temperature.margin", &out->celsius);
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetClockInfo(nvml::Device device, unsigned which, Out out) {
  return by_number("nvmlDeviceGetClockInfo", device, "clocks.", kClocks, which, out);
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetMaxClockInfo(nvml::Device device, unsigned which, Out out) {
  return by_number("nvmlDeviceGetMaxClockInfo", device, "clocks.max.", kClocks, which, out);
}

}  // namespace gpumeter::fake_nvml
