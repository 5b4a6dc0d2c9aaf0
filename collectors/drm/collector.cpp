#include "collectors/drm/collector.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <map>
#include <utility>

#include "collectors/files/paths.hpp"
#include "collectors/files/text.hpp"
#include "collectors/sources/dynamic_library.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::drm_devices {
namespace {

using files::ClassDevice;

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

/// Number of GPUs that NVML lists with a uuid. 0 if there is no NVML or it does not work. The library is
/// opened, asked and closed again; the driver may hang meanwhile.
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

constexpr const char* kThread = "find-drm-device";
constexpr Nanoseconds kLibraryAtMost = std::chrono::seconds(3);
constexpr std::string_view kTegraDriver = "gk20a";  // nvgpu's platform driver
// Names of the GPU below class/devfreq on a Jetson, by chip: Orin, Xavier, TX2, Nano.
constexpr std::string_view kTegraNames[] = {"*.gpu", "*.ga10b", "*.gv11b", "*.gp10b", "*.gm20b"};

bool is_tegra_gpu(const ClassDevice& device) {
  if (device.function) return false;  // Thor: the function of a driver that NVML reads
  return std::ranges::any_of(kTegraNames, [&](auto name) { return files::matches(name, device.name); }) &&
         sysfs::File(device.folder + "/load").status() != ReadStatus::gone;
}

const DrmKind* kind_of(const ClassDevice& device) {
  return drm_devices::kind_of(device.driver, device.renders);
}

/// The text of a file of the device; empty without one. `name` is as in Paths.
std::string text_of(files::Paths& paths, std::string_view name) {
  const auto path = name.empty() ? std::nullopt : paths.resolve(name);
  return path ? sysfs::read_text(*path) : std::string();
}

std::string model_of(const ClassDevice& device, const DrmKind& kind, files::Paths& paths) {
  const std::string product(kind.product);
  if (const std::string named = text_of(paths, kind.model_file); !named.empty()) return named;
  if (device.function) {
    std::array<char, 16> id{};
    std::snprintf(id.data(), id.size(), "%04x:%04x", device.function->vendor, device.function->device);
    return product.empty() ? std::string(id.data()) : product + " " + id.data();
  }
  const std::string compatible = uevent_value(device, "OF_COMPATIBLE_0");
  if (compatible.empty()) return product.empty() ? device.driver : product;
  return product.empty() ? compatible : product + " (" + compatible + ")";
}

DeviceInfo identify(const std::string& sysfs_root, const ClassDevice& device, const DrmKind& kind) {
  files::Paths paths(sysfs_root, device.folder);
  DeviceInfo info = described(device);
  info.vendor = kind.vendor;
  info.model = model_of(device, kind, paths);
  info.serial = text_of(paths, kind.serial_file);
  info.firmware_version = text_of(paths, kind.firmware_file);
  return info;
}

}  // namespace

DrmDiscovery::DrmDiscovery(std::string sysfs_root, NvmlCount nvml, const Clock& clock,
                           const std::shared_ptr<HangingCalls>& hanging)
    : sysfs_root_(std::move(sysfs_root)),
      nvml_(std::move(nvml)),
      devices_(kThread, clock, hanging),
      library_(kThread, kLibraryAtMost, clock, hanging, "nvml") {}

std::vector<ClassDevice> DrmDiscovery::candidates() const {
  std::vector<ClassDevice> all;
  const auto add = [&](std::vector<ClassDevice> more) {
    for (ClassDevice& device : more) {
      const auto same = [&](const ClassDevice& other) { return other.folder == device.folder; };
      if (std::ranges::none_of(all, same)) all.push_back(std::move(device));
    }
  };
  for (const std::string_view name : {"drm", "accel", "tenstorrent"})
    add(files::devices_of_class(sysfs_root_, name));
  for (const DrmKind& kind : kinds()) {
    if (kind.driver != "*") add(files::platform_devices(sysfs_root_, kind.driver));
  }
  for (ClassDevice& device : files::devices_of_class(sysfs_root_, "devfreq")) {
    if (!is_tegra_gpu(device)) continue;
    device.driver = kTegraDriver;
    device.node.clear();
    add({device});
  }
  return all;
}

Discovery DrmDiscovery::find() {
  std::map<std::string, ClassDevice> devices;
  for (ClassDevice& device : candidates()) {
    if (kind_of(device) != nullptr) devices.emplace(device.name, std::move(device));
  }
  const auto is_tegra = [](const auto& device) { return kind_of(device.second)->is_tegra; };
  if (std::ranges::any_of(devices, is_tegra) && nvml_reads_tegra()) std::erase_if(devices, is_tegra);
  std::vector<std::string> names;
  for (const auto& [name, device] : devices) names.push_back(name);
  Discovery found;
  const auto identify_one = [devices, root = sysfs_root_](const std::string& name) {
    const ClassDevice& device = devices.at(name);
    return identify(root, device, *kind_of(device));
  };
  devices_.identify(names, {}, identify_one, found);
  return found;
}

// NVML also lists the GPUs on the bus.
bool DrmDiscovery::nvml_reads_tegra() {
  const std::function<unsigned(const std::string&)> count = [nvml = nvml_](const std::string&) {
    return nvml();
  };
  const auto answers = library_.ask<unsigned>({"nvml"}, count);
  if (answers.values.empty()) return true;  // it hangs, which the collector "nvidia" reports
  const std::vector<std::string> on_bus = sysfs::list(sysfs_root_ + "/bus/pci/drivers/nvidia");
  const auto functions = std::ranges::count_if(
      on_bus, [](const std::string& name) { return pci::parse_address(name).has_value(); });
  return answers.values.begin()->second > static_cast<unsigned>(functions);
}

namespace {

DrmDiscovery::NvmlCount nvml_count(const std::string& tegra, const std::string& library) {
  if (tegra == "on") return [] { return 0U; };
  if (tegra == "off") return [] { return std::numeric_limits<unsigned>::max(); };
  return [library] { return gpus_of_nvml(library); };
}

class DrmCollector final : public Collector {
 public:
  DrmCollector(const CollectorContext& context, DrmDiscovery::NvmlCount nvml)
      : roots_{context.sysfs_root, context.procfs_root, context.drm_users},
        discovery_(context.sysfs_root, std::move(nvml), *context.clock, context.hanging) {}

  Result<Discovery> discover() override {
    if (const Result<Done> sysfs = files::has_sysfs(roots_.sysfs); !sysfs) return sysfs.error();
    return discovery_.find();
  }

  // Discovery has found the kind for this driver.
  std::unique_ptr<Device> device(const DeviceInfo& info) override {
    const DrmKind* const kind = drm_devices::kind_of(info.driver, true);
    return files::make_device(kind != nullptr ? kind->kind : files::Kind{}, roots_);
  }

 private:
  const files::Roots roots_;
  DrmDiscovery discovery_;
};

}  // namespace

std::optional<OptionProblem> check_drm(const CollectorContext& context) {
  const std::string tegra = option(context, kDrmOptions[0]);
  if (tegra == "auto" || tegra == "on" || tegra == "off") return std::nullopt;
  return OptionProblem{"tegra", 0, "must be auto, on or off, not \"" + tegra + '"'};
}

Result<std::unique_ptr<Collector>> open_drm(const CollectorContext& context) {
  return std::unique_ptr<Collector>(std::make_unique<DrmCollector>(
      context, nvml_count(option(context, kDrmOptions[0]), option(context, kDrmOptions[1]))));
}

}  // namespace gpumeter::drm_devices
