#include "collectors/drm/collector.hpp"

#include <filesystem>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include "collectors/drm/discovery.hpp"
#include "collectors/drm/nvml_probe.hpp"

namespace gpumeter::drm_devices {
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
    std::error_code error;
    if (!std::filesystem::is_directory(roots_.sysfs, error))
      return Error(roots_.sysfs + ": does not exist; is sysfs mounted?");
    return discovery_.find();
  }

  // Discovery has found the kind for this driver.
  std::unique_ptr<Device> device(const DeviceInfo& info) override {
    const DrmKind* const kind = kind_of(info.driver, true);
    return tree::make_device(kind != nullptr ? kind->kind : tree::Kind{}, roots_);
  }

 private:
  const tree::Roots roots_;
  DrmDiscovery discovery_;
};

}  // namespace

std::optional<OptionProblem> check_drm(const CollectorContext& context) {
  const std::string tegra = option(context, kDrmOptions[0]);
  if (tegra == "auto" || tegra == "on" || tegra == "off") return std::nullopt;
  return OptionProblem{"tegra", 0, "must be auto, on or off, not \"" + tegra + '"'};
}

Result<std::unique_ptr<Collector>> open_drm(const CollectorContext& context) {
  std::unique_ptr<Collector> collector = std::make_unique<DrmCollector>(
      context, nvml_count(option(context, kDrmOptions[0]), option(context, kDrmOptions[1])));
  return collector;
}

}  // namespace gpumeter::drm_devices
