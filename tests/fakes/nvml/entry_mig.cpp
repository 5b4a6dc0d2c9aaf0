#include <cstdio>

#include "tests/fakes/nvml/call.hpp"

// MIG instances, licences.

namespace gpumeter::fake_nvml {
namespace {

/// Finds the instance with this `index`: its number in the list unless the scenario overrides it. Indices
/// have gaps.
std::optional<unsigned> instance_at(const Call& call, unsigned index) {
  for (unsigned i = 0; i < call.count("mig.instances"); ++i) {
    const std::string of = "mig.instances." + std::to_string(i) + ".";
    if (or_else(call, of + "index", i) == index && or_else(call, of + "present", 1U) != 0) return i;
  }
  return std::nullopt;
}

nvml::LicensableFeature licence(const Call& call, const std::string& of) {
  nvml::LicensableFeature out{};
  out.code = or_else(call, of + "code", 0U);
  out.state = or_else(call, of + "state", 0U);
  out.enabled = or_else(call, of + "enabled", 0U);
  std::snprintf(out.license_info, sizeof out.license_info, "%s", call.at(of + "info").text.c_str());
  std::snprintf(out.product, sizeof out.product, "%s", call.at(of + "product").text.c_str());
  out.expiry_status = or_else(call, of + "expiry.status", std::uint8_t{});
  out.expiry_year = or_else(call, of + "expiry.year", 0U);
  out.expiry_month = or_else(call, of + "expiry.month", std::uint16_t{});
  out.expiry_day = or_else(call, of + "expiry.day", std::uint16_t{});
  out.expiry_hour = or_else(call, of + "expiry.hour", std::uint16_t{});
  out.expiry_minute = or_else(call, of + "expiry.minute", std::uint16_t{});
  out.expiry_second = or_else(call, of + "expiry.second", std::uint16_t{});
  return out;
}

}  // namespace

FAKE_NVML_EXPORT unsigned nvmlDeviceGetMaxMigDeviceCount(nvml::Device device, unsigned* out) {
  return one_number("nvmlDeviceGetMaxMigDeviceCount", device, "mig.most", out);
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetMigDeviceHandleByIndex(nvml::Device device, unsigned index,
                                                              nvml::Device* out) {
  return on_device("nvmlDeviceGetMigDeviceHandleByIndex", device, [&](const Call& call) -> unsigned {
    if (out == nullptr || call.handle().instance != 0) return nvml::kInvalidArgument;
    if (index >= or_else(call, "mig.most", 0U))
      return call.says("mig.most") ? nvml::kInvalidArgument : nvml::kNotSupported;
    const auto instance = instance_at(call, index);
    if (!instance) return nvml::kNotFound;
    Handle handle = call.handle();
    handle.instance = *instance + 1;
    *out = encode(handle);
    return nvml::kSuccess;
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetGpuInstanceId(nvml::Device device, unsigned* out) {
  return one_number("nvmlDeviceGetGpuInstanceId", device, "gi", out);
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetComputeInstanceId(nvml::Device device, unsigned* out) {
  return one_number("nvmlDeviceGetComputeInstanceId", device, "ci", out);
}

// The handle of a GPU instance is that of one of its MIG devices. Without the key `gi_profile`, the caller is
// not privileged.
FAKE_NVML_EXPORT unsigned nvmlDeviceGetGpuInstanceById(nvml::Device device, unsigned id,
                                                       nvml::GpuInstance* out) {
  return on_device("nvmlDeviceGetGpuInstanceById", device, [&](const Call& call) -> unsigned {
    if (out == nullptr || call.handle().instance != 0) return nvml::kInvalidArgument;
    for (unsigned i = 0; i < call.count("mig.instances"); ++i) {
      const std::string of = "mig.instances." + std::to_string(i) + ".";
      if (!call.says(of + "gi") || or_else(call, of + "gi", 0U) != id) continue;
      if (!call.says(of + "gi_profile")) return nvml::kNoPermission;
      Handle handle = call.handle();
      handle.instance = i + 1;
      *out = reinterpret_cast<nvml::GpuInstance>(encode(handle));
      return nvml::kSuccess;
    }
    return nvml::kNotFound;
  });
}

FAKE_NVML_EXPORT unsigned nvmlGpuInstanceGetInfo(nvml::GpuInstance instance, nvml::GpuInstanceInfo* out) {
  const auto device = reinterpret_cast<nvml::Device>(instance);
  return on_device("nvmlGpuInstanceGetInfo", device, [&](const Call& call) -> unsigned {
    if (out == nullptr || call.handle().instance == 0) return nvml::kInvalidArgument;
    *out = {};
    return first_error(call.read("gi", &out->id), call.read("gi_profile", &out->profile_id),
                       call.read("gi_start", &out->placement_start));
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetAttributes_v2(nvml::Device device, nvml::DeviceAttributes* out) {
  return on_device("nvmlDeviceGetAttributes_v2", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    const std::string of = "attributes.";
    *out = {};
    if (const unsigned error = call.read(of + "multiprocessors", &out->multiprocessors)) return error;
    out->copy_engines = or_else(call, of + "copy_engines", 0U);
    out->decoders = or_else(call, of + "decoders", 0U);
    out->encoders = or_else(call, of + "encoders", 0U);
    out->jpegs = or_else(call, of + "jpegs", 0U);
    out->ofas = or_else(call, of + "ofas", 0U);
    out->gpu_slices = or_else(call, of + "gpu_slices", 0U);
    out->compute_slices = or_else(call, of + "compute_slices", 0U);
    out->memory_mib = or_else(call, of + "memory", std::uint64_t{}) >> 20;
    return nvml::kSuccess;
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetGridLicensableFeatures_v4(nvml::Device device,
                                                                 nvml::LicensableFeatures* out) {
  return on_device("nvmlDeviceGetGridLicensableFeatures_v4", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    if (!call.lists("licence.features")) return nvml::kNotSupported;
    *out = {};
    out->is_supported = or_else(call, "licence.supported", 1);
    out->count = static_cast<unsigned>(std::min<std::size_t>(call.count("licence.features"), 3));
    for (unsigned i = 0; i < out->count; ++i) {
      out->features[i] = licence(call, "licence.features." + std::to_string(i) + ".");
    }
    return nvml::kSuccess;
  });
}

}  // namespace gpumeter::fake_nvml
