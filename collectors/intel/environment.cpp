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
  environment.may_see_use = memory::may_see_use();
  environment.query_memory = [may_see = environment.may_see_use](const std::string& node,
                                                                 const std::string& driver) {
    return memory::query_node(node, driver, may_see);
  };
  environment.read_errors = ras::read_counts;
  return environment;
}

std::vector<DeniedValues> denied_values(const Environment& environment,
                                        const std::vector<DeviceInfo>& devices) {
  std::vector<DeniedValues> denied;
  const auto has_events = [&](const DeviceInfo& info) {
    return !pmu::find_folder(environment.sysfs_root, info.driver, info.pci_address).empty();
  };
  const bool may_have_events = environment.pmu && std::ranges::any_of(devices, has_events);
  if (may_have_events && pmu::permission(*environment.pmu) == ReadStatus::denied) {
    denied.push_back({"busy_time", "pmu.conf"});
  }
  if (!devices.empty() && !environment.may_see_use) denied.push_back({"used_memory", "pmu.conf"});
  return denied;
}

}  // namespace gpumeter::intel
