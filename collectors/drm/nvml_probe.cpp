#include "collectors/drm/nvml_probe.hpp"

#include <array>

#include "collectors/sources/dynamic_library.hpp"

namespace gpumeter::drm_devices {
namespace {

// Types of nvml.h; every function returns an nvmlReturn_t; 0 is success.
using Handle = void*;
using Plain = int (*)();
using Count = int (*)(unsigned*);
using ByIndex = int (*)(unsigned, Handle*);
using Text = int (*)(Handle, char*, unsigned);

unsigned count_identified(const DynamicLibrary& library) {
  const auto count_of = library.symbol<Count>("nvmlDeviceGetCount_v2");
  const auto handle_of = library.symbol<ByIndex>("nvmlDeviceGetHandleByIndex_v2");
  const auto uuid_of = library.symbol<Text>("nvmlDeviceGetUUID");
  unsigned count = 0;
  if (count_of == nullptr || handle_of == nullptr || uuid_of == nullptr || count_of(&count) != 0) return 0;
  unsigned identified = 0;
  for (unsigned i = 0; i < count; ++i) {
    Handle gpu = nullptr;
    std::array<char, 96> uuid{};  // NVML_DEVICE_UUID_V2_BUFFER_SIZE
    if (handle_of(i, &gpu) == 0 && uuid_of(gpu, uuid.data(), uuid.size()) == 0) ++identified;
  }
  return identified;
}

}  // namespace

unsigned gpus_of_nvml(const std::string& name) {
  const Result<DynamicLibrary> library = DynamicLibrary::open(name);
  if (!library) return 0;
  const auto init = library->symbol<Plain>("nvmlInit_v2");
  const auto shutdown = library->symbol<Plain>("nvmlShutdown");
  if (init == nullptr || shutdown == nullptr || init() != 0) return 0;
  const unsigned identified = count_identified(*library);
  shutdown();
  return identified;
}

}  // namespace gpumeter::drm_devices
