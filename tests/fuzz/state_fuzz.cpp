// The files of the daemon's own folders: devices.json of the state folder, and the outcome of a reload. What
// is loaded is saved, and loads again as it was.
#include <filesystem>
#include <string>

#include "daemon/fleet/device_directory.hpp"
#include "daemon/reload.hpp"
#include "tests/fuzz/folder.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter {
namespace {

bool is_same(const KnownDevice& a, const KnownDevice& b) {
  return a.index == b.index && a.collector == b.collector && a.info.uuid == b.info.uuid &&
         a.info.vendor == b.info.vendor && a.info.model == b.info.model &&
         a.info.pci_address == b.info.pci_address && a.last_seen == b.last_seen && a.missing == b.missing;
}

void expect_valid(const DeviceDirectory& directory) {
  std::set<unsigned> indexes;
  for (const auto& [uuid, device] : directory.devices()) {
    fuzz::expect(!uuid.empty() && uuid == device.info.uuid && device.index <= DeviceDirectory::kHighestIndex);
    fuzz::expect(indexes.insert(device.index).second);
  }
}

void load_and_save(const fuzz::Folder& folder) {
  DeviceDirectory directory(folder.path(), folder.path() + "/machine-id");
  const Result<Done> loaded = directory.load();
  expect_valid(directory);
  const bool is_set_aside = std::filesystem::exists(folder.path() + "/devices.json.bad");
  fuzz::expect(directory.is_readable());
  fuzz::expect(loaded ? !is_set_aside : is_set_aside && directory.devices().empty());
  if (!loaded) fuzz::expect(loaded.error().message().find("devices.json") != std::string::npos);
  fuzz::expect(bool(directory.save()));
  DeviceDirectory again(folder.path(), folder.path() + "/machine-id");
  fuzz::expect(bool(again.load()) && again.devices().size() == directory.devices().size());
  for (const auto& [uuid, device] : directory.devices()) {
    fuzz::expect(again.find(uuid) != nullptr && is_same(device, *again.find(uuid)));
  }
}

void read_twice(const fuzz::Folder& folder) {
  const std::optional<ReloadOutcome> outcome = read_outcome(folder.path());
  if (!outcome) return;
  fuzz::expect(bool(write_outcome(folder.path(), *outcome)));
  const std::optional<ReloadOutcome> again = read_outcome(folder.path());
  fuzz::expect(again && again->daemon == outcome->daemon && again->begun == outcome->begun);
}

}  // namespace
}  // namespace gpumeter

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  static const fuzz::Folder folder;
  const std::string_view text = fuzz::text_of(data, size);
  std::filesystem::remove(folder.path() + "/devices.json.bad");
  folder.write("devices.json", text);
  folder.write("reload", text);
  load_and_save(folder);
  read_twice(folder);
  return 0;
}
