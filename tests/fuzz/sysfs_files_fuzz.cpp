// The same bytes in each of the files that discovery reads: uevent, revision, unique_id, amdgpu.ids.
#include <string>

#include "collectors/amd/collector.hpp"
#include "collectors/files/sleep.hpp"
#include "tests/fuzz/folder.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter {
namespace {

constexpr const char* kFunction = "0000:0c:00.0/";

void read_all(const fuzz::Folder& folder) {
  const std::string path = folder.path() + "/0000:0c:00.0";
  const pci::Function function = pci::read_function(path).value();
  fuzz::expect(function.class_code <= 0xffffffffU);
  const DeviceInfo info =
      amd::identify(function, {"/nonexistent", path + "/ids", drm::NodeMap("/nonexistent")});
  fuzz::expect(!info.uuid.empty() && !info.model.empty());
  const std::optional<files::PowerState> state = files::RuntimePower(path).read();
  fuzz::expect(state && state->delay >= Nanoseconds{0});
}

}  // namespace
}  // namespace gpumeter

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  static const fuzz::Folder folder;
  const std::string prefix = kFunction;
  for (const char* const name : {"uevent", "revision", "unique_id", "numa_node", "ids",
                                 "power/runtime_status", "power/autosuspend_delay_ms"}) {
    folder.write(prefix + name, fuzz::text_of(data, size));
  }
  folder.write(prefix + "power/control", "auto\n");
  read_all(folder);
  return 0;
}
