// The same bytes in each of the files that discovery reads: uevent, revision, unique_id, amdgpu.ids.
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "collectors/amd/identity.hpp"
#include "collectors/sources/runtime_power.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter {
namespace {

/// The folder of one PCI function, removed by the destructor.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "gpumeter-fuzz-XXXXXX").string();
    fuzz::expect(::mkdtemp(name.data()) != nullptr);
    root_ = name;
    std::filesystem::create_directories(root_ / "0000:0c:00.0/power");
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path() const { return (root_ / "0000:0c:00.0").string(); }
  void write(const char* name, std::string_view bytes) const {
    std::ofstream(root_ / "0000:0c:00.0" / name, std::ios::binary).write(bytes.data(), std::ssize(bytes));
  }

 private:
  std::filesystem::path root_;
};

void read_all(const Folder& folder) {
  const pci::Function function = pci::read_function(folder.path()).value();
  fuzz::expect(function.class_code <= 0xffffffffU);
  const DeviceInfo info =
      amd::identify(function, {"/nonexistent", folder.path() + "/ids", drm::NodeMap("/nonexistent")});
  fuzz::expect(!info.uuid.empty() && !info.model.empty());
  const std::optional<PowerState> state = RuntimePower(folder.path()).read();
  fuzz::expect(state && state->delay >= Nanoseconds{0});
}

}  // namespace
}  // namespace gpumeter

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const gpumeter::Folder folder;
  for (const char* const name : {"uevent", "revision", "unique_id", "numa_node", "ids",
                                 "power/runtime_status", "power/autosuspend_delay_ms"}) {
    folder.write(name, gpumeter::fuzz::text_of(data, size));
  }
  folder.write("power/control", "auto\n");
  gpumeter::read_all(folder);
  return 0;
}
