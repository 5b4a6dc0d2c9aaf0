#include "tests/fakes/nvml/call.hpp"
#include "tests/fakes/nvml/gpm.hpp"

namespace gpumeter::fake_nvml {
namespace {

constexpr double kClosest = 0.1;         // smallest distance of two samples in seconds, by the header's note
constexpr unsigned kFirstCounter = 248;  // NVML_GPM_METRIC_SM_CYCLES_ELAPSED: the first "since reboot"
constexpr unsigned kContextSwitchFirst = 170;  // NVML_GPM_METRIC_GR0_CTXSW_CYCLES_ELAPSED
constexpr unsigned kMetricsKnown = 333;        // NVML_GPM_METRIC_MAX; `layouts: {gpm_metrics: N}` lowers it

nvml::GpmSample handle_of(std::uint64_t id) { return reinterpret_cast<nvml::GpmSample>(id << 4); }
std::uint64_t id_of(nvml::GpmSample sample) { return reinterpret_cast<std::uint64_t>(sample) >> 4; }

/// Returns null, and records a violation, if the sample does not exist (any more). Call with the library's
/// mutex held.
std::shared_ptr<GpmSampleState> find_sample(Library& library, nvml::GpmSample sample, const char* function) {
  const auto found = library.samples.find(id_of(sample));
  if (found != library.samples.end()) return found->second;
  const bool freed = library.freed.contains(id_of(sample));
  library.violations +=
      std::string(function) + (freed ? " with a freed GPM sample\n" : " with no GPM sample\n");
  return nullptr;
}

bool supports_gpm(const Call& call) {
  unsigned supported = 0;
  return call.read("gpm.supported", &supported) == nvml::kSuccess && supported != 0;
}

/// `prefix`: that of the instance; empty for the device.
unsigned take(const Call& call, const char* function, nvml::GpmSample sample, const std::string& prefix) {
  Library& library = Library::instance();
  const std::lock_guard lock(library.mutex);
  const auto state = find_sample(library, sample, function);
  if (state == nullptr) return nvml::kInvalidArgument;
  *state = {call.shared_scenario(), &call.device(), prefix + "gpm.metrics.", call.now()};
  return nvml::kSuccess;
}

/// Between two samples, a ratio or rate gives its mean, and a counter its state at the second. nan and inf
/// pass through.
void answer(const GpmSampleState& first, const GpmSampleState& second, unsigned most, nvml::GpmMetric& out) {
  out.value = 0;
  out.short_name = out.long_name = out.unit = "";
  out.result = nvml::kInvalidArgument;
  if (out.id == 0 || out.id >= most) return;
  const std::string path = second.prefix + std::to_string(out.id);
  const Value now = second.device->facts.at(path, second.taken);
  out.result = now.error;
  if (now.error != nvml::kSuccess) return;
  const bool counter =
      out.id >= kFirstCounter || (out.id >= kContextSwitchFirst && out.id < 210 && out.id % 5 < 3);
  const ValueOverTime* value = second.device->facts.find(path);
  const auto seconds = static_cast<Number>(second.taken - first.taken);
  const bool of_the_moment = counter || seconds == 0 || !std::isfinite(now.number);
  out.value = static_cast<double>(
      of_the_moment ? now.number : (value->integral(second.taken) - value->integral(first.taken)) / seconds);
}

}  // namespace

FAKE_NVML_EXPORT unsigned nvmlGpmQueryDeviceSupport(nvml::Device device, nvml::GpmSupport* out) {
  return on_device("nvmlGpmQueryDeviceSupport", device, [&](const Call& call) -> unsigned {
    if (out == nullptr) return nvml::kInvalidArgument;
    if (out->version != 1) return nvml::kArgumentVersionMismatch;
    out->is_supported = supports_gpm(call) ? 1 : 0;
    return nvml::kSuccess;
  });
}

FAKE_NVML_EXPORT unsigned nvmlGpmSampleAlloc(nvml::GpmSample* out) {
  Call call("nvmlGpmSampleAlloc");
  if (const unsigned error = call.enter()) return error;
  if (out == nullptr) return nvml::kInvalidArgument;
  Library& library = Library::instance();
  const std::lock_guard lock(library.mutex);
  const std::uint64_t id = library.next_id++;
  library.samples.emplace(id, std::make_shared<GpmSampleState>());
  *out = handle_of(id);
  return nvml::kSuccess;
}

FAKE_NVML_EXPORT unsigned nvmlGpmSampleFree(nvml::GpmSample sample) {
  Call call("nvmlGpmSampleFree");
  if (const unsigned error = call.enter()) return error;
  Library& library = Library::instance();
  const std::lock_guard lock(library.mutex);
  if (find_sample(library, sample, "nvmlGpmSampleFree") == nullptr) return nvml::kInvalidArgument;
  library.samples.erase(id_of(sample));
  library.freed.insert(id_of(sample));
  return nvml::kSuccess;
}

FAKE_NVML_EXPORT unsigned nvmlGpmSampleGet(nvml::Device device, nvml::GpmSample sample) {
  return on_device("nvmlGpmSampleGet", device, [&](const Call& call) -> unsigned {
    if (!supports_gpm(call)) return nvml::kNotSupported;
    return take(call, "nvmlGpmSampleGet", sample, call.prefix());
  });
}

FAKE_NVML_EXPORT unsigned nvmlGpmMigSampleGet(nvml::Device device, unsigned gpu_instance,
                                              nvml::GpmSample sample) {
  return on_device("nvmlGpmMigSampleGet", device, [&](const Call& call) -> unsigned {
    if (!supports_gpm(call)) return nvml::kNotSupported;
    for (std::size_t i = 0; i < call.count("mig.instances"); ++i) {
      const std::string prefix = "mig.instances." + std::to_string(i) + ".";
      unsigned gi = 0, present = 1;
      call.read(prefix + "present", &present);
      if (call.read(prefix + "gi", &gi) == nvml::kSuccess && gi == gpu_instance && present != 0) {
        return take(call, "nvmlGpmMigSampleGet", sample, prefix);
      }
    }
    return nvml::kInvalidArgument;
  });
}

FAKE_NVML_EXPORT unsigned nvmlGpmMetricsGet(nvml::GpmMetricsGet* out) {
  Call call("nvmlGpmMetricsGet");
  if (const unsigned error = call.enter()) return error;
  if (out == nullptr) return nvml::kInvalidArgument;
  if (out->version != 1) return nvml::kArgumentVersionMismatch;
  const unsigned most = call.scenario().layout("gpm_metrics", kMetricsKnown);
  if (out->count == 0 || out->count > most) return nvml::kInvalidArgument;
  Library& library = Library::instance();
  const std::lock_guard lock(library.mutex);
  const auto first = find_sample(library, out->first, "nvmlGpmMetricsGet");
  const auto second = find_sample(library, out->second, "nvmlGpmMetricsGet");
  if (first == nullptr || second == nullptr || second->device == nullptr || first->device != second->device ||
      first->prefix != second->prefix || second->taken < first->taken) {
    return nvml::kInvalidArgument;
  }
  const bool stands_still = library.clock.is_virtual() && second->taken == first->taken;
  if (!stands_still && second->taken - first->taken < kClosest)
    library.violations += "GPM samples less than 100 ms apart\n";
  for (unsigned i = 0; i < out->count; ++i) answer(*first, *second, most, out->metrics[i]);
  return nvml::kSuccess;
}

}  // namespace gpumeter::fake_nvml
