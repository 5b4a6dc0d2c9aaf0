#include "collectors/nvidia/nvml/abi.hpp"
#include "tests/fakes/nvml/call.hpp"

// Start, end, and calls that need no device.

namespace gpumeter::fake_nvml {
namespace {

unsigned system_text(const char* function, const char* path, char* out, unsigned size) {
  Call call(function);
  if (const unsigned error = call.enter()) return error;
  return call.read_text(path, out, size);
}

}  // namespace

FAKE_NVML_EXPORT unsigned nvmlInit_v2() {
  Library& library = Library::instance();
  const Call call("nvmlInit_v2");
  return library.init();
}

// Called by nvidia-ml-py. Its flags (no GPUs needed, no attach) do not affect a scenario.
FAKE_NVML_EXPORT unsigned nvmlInitWithFlags(unsigned) { return nvmlInit_v2(); }

FAKE_NVML_EXPORT unsigned nvmlShutdown() {
  const Call call("nvmlShutdown");
  return Library::instance().shutdown();
}

FAKE_NVML_EXPORT const char* nvmlErrorString(unsigned code) {
  if (code == nvml::kSuccess) return "The operation was successful";
  const char* name = name_of_error(code);
  return name == nullptr ? "Unknown Error" : name;
}

FAKE_NVML_EXPORT unsigned nvmlSystemGetDriverVersion(char* out, unsigned size) {
  return system_text("nvmlSystemGetDriverVersion", "system.driver_version", out, size);
}

FAKE_NVML_EXPORT unsigned nvmlSystemGetNVMLVersion(char* out, unsigned size) {
  return system_text("nvmlSystemGetNVMLVersion", "system.nvml_version", out, size);
}

FAKE_NVML_EXPORT unsigned nvmlSystemGetConfComputeState(nvml::ConfidentialState* out) {
  Call call("nvmlSystemGetConfComputeState");
  if (const unsigned error = call.enter()) return error;
  if (out == nullptr) return nvml::kInvalidArgument;
  return first_error(call.read("system.confidential.environment", &out->environment),
                     call.read("system.confidential.feature", &out->feature),
                     call.read("system.confidential.devtools", &out->devtools));
}

FAKE_NVML_EXPORT unsigned nvmlSystemGetConfComputeSettings(nvml::ConfidentialSettings* out) {
  Call call("nvmlSystemGetConfComputeSettings");
  if (const unsigned error = call.enter()) return error;
  if (out == nullptr) return nvml::kInvalidArgument;
  if (out->version != nvml::version_of<nvml::ConfidentialSettings>(1)) return nvml::kArgumentVersionMismatch;
  return first_error(call.read("system.confidential.environment", &out->environment),
                     call.read("system.confidential.feature", &out->feature),
                     call.read("system.confidential.devtools", &out->devtools),
                     call.read("system.confidential.multi_gpu", &out->multi_gpu));
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetCount_v2(unsigned* out) {
  Call call("nvmlDeviceGetCount_v2");
  if (const unsigned error = call.enter()) return error;
  if (out == nullptr) return nvml::kInvalidArgument;
  Library& library = Library::instance();
  const std::lock_guard lock(library.mutex);
  *out = static_cast<unsigned>(library.visible.size());
  return nvml::kSuccess;
}

/// Returns a handle for the GPU at this place in the scenario, unless it is lost. enter() has been called.
static unsigned open_handle(Call& call, std::size_t number, unsigned generation, nvml::Device* out) {
  if (const unsigned error = call.enter_device(number)) return error;
  *out = encode({.generation = generation,
                 .returns = static_cast<unsigned>(call.device().returns(call.now())),
                 .device = static_cast<unsigned>(number)});
  return nvml::kSuccess;
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml::Device* out) {
  Call call("nvmlDeviceGetHandleByIndex_v2");
  if (const unsigned error = call.enter()) return error;
  Library& library = Library::instance();
  std::unique_lock lock(library.mutex);
  if (out == nullptr || index >= library.visible.size()) return nvml::kInvalidArgument;
  const std::size_t number = library.visible[index];
  const unsigned generation = library.generation;
  lock.unlock();
  return open_handle(call, number, generation, out);
}

/// A GPU that does not report its UUID is not found.
FAKE_NVML_EXPORT unsigned nvmlDeviceGetHandleByUUID(const char* uuid, nvml::Device* out) {
  Call call("nvmlDeviceGetHandleByUUID");
  if (const unsigned error = call.enter()) return error;
  if (uuid == nullptr || out == nullptr) return nvml::kInvalidArgument;
  Library& library = Library::instance();
  std::unique_lock lock(library.mutex);
  const std::vector<std::size_t> visible = library.visible;
  const unsigned generation = library.generation;
  lock.unlock();
  for (const std::size_t number : visible) {
    const Facts& facts = call.scenario().devices.at(number).facts;
    const bool is_told = facts.error("nvmlDeviceGetUUID", call.now()) == nvml::kSuccess;
    if (is_told && facts.at("uuid", call.now()).text == uuid)
      return open_handle(call, number, generation, out);
  }
  return nvml::kNotFound;
}

}  // namespace gpumeter::fake_nvml
