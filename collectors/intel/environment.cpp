#include "collectors/intel/environment.hpp"

#include <algorithm>
#include <utility>

#include "collectors/intel/memory/capability.hpp"
#include "collectors/intel/pmu/engine_meter.hpp"
#include "collectors/intel/ras/client.hpp"

namespace gpumeter::intel {

Environment environment_of(const std::string& sysfs_root, std::shared_ptr<DrmUsers> drm_users) {
  Environment environment;
  environment.sysfs_root = sysfs_root;
  environment.drm_users = std::move(drm_users);
  if (sysfs_root != "/sys") return environment;
  environment.pmu = std::make_shared<pmu::KernelOpener>();
  environment.query_memory = [](const std::string& node, const std::string& driver) {
    return memory::query_node(node, driver, memory::may_see_use());
  };
  environment.read_errors = ras::read_counts;
  return environment;
}

std::string note_on_events(const Environment& environment, const std::vector<DeviceInfo>& devices) {
  const auto has_events = [&](const DeviceInfo& info) {
    return !pmu::find_folder(environment.sysfs_root, info.driver, info.pci_address).empty();
  };
  if (!environment.pmu || std::ranges::none_of(devices, has_events)) return "";
  return pmu::permission(*environment.pmu) == ReadStatus::denied ? pmu::denial_note() : "";
}

}  // namespace gpumeter::intel
