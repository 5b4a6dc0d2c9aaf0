#include <algorithm>
#include <cstdio>

#include "tests/fakes/nvml/call.hpp"

// The virtual GPUs of a host: which machines have them, their memory, and the driver's utilization samples.

namespace gpumeter::fake_nvml {
namespace {

constexpr const char* kActive = "vgpus.active";
constexpr int kRemembered = 72;  // samples

std::string entry(std::size_t i) { return std::string(kActive) + "." + std::to_string(i) + "."; }

/// The paths of the virtual GPUs that are active now.
std::vector<std::string> active(const Call& call) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < call.count(kActive); ++i) {
    if (or_else(call, entry(i) + "present", 1U) != 0) paths.push_back(entry(i));
  }
  return paths;
}

/// Calls body(facts, path) for the virtual GPU with this id, on whichever device it is.
template <class Body>
unsigned on_vgpu(const char* function, nvml::Vgpu id, Body body) {
  Call call(function);
  if (const unsigned error = call.enter()) return error;
  for (const Device& device : call.scenario().devices) {
    for (std::size_t i = 0; i < device.facts.count(kActive); ++i) {
      const Value own = device.facts.at(entry(i) + "id", call.now());
      const bool is_it = own.error == nvml::kSuccess && to<unsigned>(own) == id;
      if (is_it) return body(device.facts, entry(i), call.now());
    }
  }
  return nvml::kInvalidArgument;
}

/// The mean since `last_seen`, and the time of the newest sample; nullopt if there is none.
struct Mean {
  unsigned percent;
  std::uint64_t timestamp;
};
std::optional<Mean> mean_of(const Call& call, const std::string& of, double period, std::uint64_t last_seen) {
  const auto epoch = static_cast<double>(Library::instance().clock.epoch_usec());
  const double newest = std::floor(call.now() / period + 1e-9) * period;
  const double seen = last_seen == 0 ? 0 : (static_cast<double>(last_seen) - epoch) / 1e6;
  const double from = std::max({0.0, seen, newest - kRemembered * period});
  const ValueOverTime* sm = call.find(of + "sm");
  if (newest <= from || sm == nullptr) return std::nullopt;
  const Number mean = (sm->integral(newest) - sm->integral(from)) / Number{newest - from};
  const auto stamp = static_cast<std::uint64_t>(std::llround(epoch + newest * 1e6));
  return Mean{to<unsigned>(Value{.number = mean}), stamp};
}

/// Calls put(place, id, mean) for each virtual GPU. `count`: first the room, then the number.
template <class Put>
unsigned samples(const Call& call, unsigned& count, std::uint64_t last_seen, Put put) {
  const Value period = call.at("vgpus.samples.period_ms");
  if (period.error != nvml::kSuccess) return period.error;
  const std::vector<std::string> paths = active(call);
  const unsigned room = count;
  count = static_cast<unsigned>(paths.size());
  if (room < count) return nvml::kInsufficientSize;
  unsigned written = 0;
  for (const std::string& of : paths) {
    const auto mean = mean_of(call, of, static_cast<double>(period.number) / 1e3, last_seen);
    if (mean) put(written++, or_else(call, of + "id", 0U), *mean);
  }
  count = written;
  return written == 0 ? nvml::kNotFound : nvml::kSuccess;
}

nvml::Value percent(unsigned number) {
  nvml::Value value{};
  value.as_uint = number;
  return value;
}

}  // namespace

FAKE_NVML_EXPORT unsigned nvmlDeviceGetActiveVgpus(nvml::Device device, unsigned* count, nvml::Vgpu* out) {
  return on_device("nvmlDeviceGetActiveVgpus", device, [&](const Call& call) -> unsigned {
    if (count == nullptr) return nvml::kInvalidArgument;
    if (!call.lists(kActive)) return nvml::kNotSupported;
    const std::vector<std::string> paths = active(call);
    const unsigned room = *count;
    *count = static_cast<unsigned>(paths.size());
    if (room < *count) return nvml::kInsufficientSize;
    for (unsigned i = 0; i < *count; ++i) out[i] = or_else(call, paths[i] + "id", 0U);
    return nvml::kSuccess;
  });
}

FAKE_NVML_EXPORT unsigned nvmlVgpuInstanceGetVmID(nvml::Vgpu vgpu, char* out, unsigned size, unsigned* type) {
  constexpr unsigned kUuid = 1;  // NVML_VGPU_VM_ID_UUID
  return on_vgpu("nvmlVgpuInstanceGetVmID", vgpu,
                 [&](const Facts& facts, const std::string& of, double now) -> unsigned {
                   const Value vm = facts.at(of + "vm", now);
                   if (vm.error != nvml::kSuccess) return vm.error;
                   if (out == nullptr || type == nullptr) return nvml::kInvalidArgument;
                   if (size <= vm.text.size()) return nvml::kInsufficientSize;
                   std::snprintf(out, size, "%s", vm.text.c_str());
                   *type = kUuid;
                   return nvml::kSuccess;
                 });
}

FAKE_NVML_EXPORT unsigned nvmlVgpuInstanceGetFbUsage(nvml::Vgpu vgpu, std::uint64_t* out) {
  return on_vgpu("nvmlVgpuInstanceGetFbUsage", vgpu,
                 [&](const Facts& facts, const std::string& of, double now) -> unsigned {
                   const Value memory = facts.at(of + "memory", now);
                   if (memory.error != nvml::kSuccess) return memory.error;
                   if (out == nullptr) return nvml::kInvalidArgument;
                   *out = to<std::uint64_t>(memory);
                   return nvml::kSuccess;
                 });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetVgpuInstancesUtilizationInfo(nvml::Device device,
                                                                    nvml::VgpusUtilization* query) {
  return on_device("nvmlDeviceGetVgpuInstancesUtilizationInfo", device, [&](const Call& call) -> unsigned {
    if (query == nullptr) return nvml::kInvalidArgument;
    if (query->version != nvml::version_of<nvml::VgpusUtilization>(1)) return nvml::kArgumentVersionMismatch;
    query->type = nvml::ValueType::uint;
    return samples(call, query->count, query->last_seen, [&](unsigned i, unsigned id, const Mean& mean) {
      query->samples[i] = {.timestamp = mean.timestamp,
                           .vgpu = id,
                           .sm = percent(mean.percent),
                           .memory = {},
                           .encoder = {},
                           .decoder = {},
                           .jpeg = {},
                           .ofa = {}};
    });
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetVgpuUtilization(nvml::Device device, std::uint64_t last_seen,
                                                       nvml::ValueType* type, unsigned* count,
                                                       nvml::FormerVgpuUtilization* out) {
  return on_device("nvmlDeviceGetVgpuUtilization", device, [&](const Call& call) -> unsigned {
    if (type == nullptr || count == nullptr) return nvml::kInvalidArgument;
    *type = nvml::ValueType::uint;
    return samples(call, *count, last_seen, [&](unsigned i, unsigned id, const Mean& mean) {
      out[i] = {.vgpu = id,
                .timestamp = mean.timestamp,
                .sm = percent(mean.percent),
                .memory = {},
                .encoder = {},
                .decoder = {}};
    });
  });
}

}  // namespace gpumeter::fake_nvml
