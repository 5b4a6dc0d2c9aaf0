#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/api/device.hpp"
#include "collectors/api/drm_use.hpp"
#include "collectors/intel/memory/regions.hpp"
#include "collectors/intel/pmu/counter.hpp"
#include "collectors/intel/ras/counts.hpp"

namespace gpumeter::intel {

/// What a card's context reads in addition to its files. Tests replace each part.
struct Environment {
  std::string sysfs_root;  ///< with the PMUs; "/sys"
  /// null: no events are opened, because the tree is not the machine's own.
  std::shared_ptr<pmu::Opener> pmu;
  /// Returns the regions of the memory behind a node; empty: nodes are not opened.
  std::function<memory::Regions(const std::string& node, const std::string& driver)> query_memory;
  bool may_see_use = true;  ///< the drivers tell how much of the memory is used
  /// Returns the error counts of a card; empty: they are not asked for.
  std::function<ras::Counts(const std::string& pci_address)> read_errors;
  std::shared_ptr<DrmUsers> drm_users;  ///< null: clients are not scanned
};

/// The machine's own, if `sysfs_root` is "/sys".
Environment environment_of(const std::string& sysfs_root, std::shared_ptr<DrmUsers> drm_users);

/// What of these devices cannot be read without CAP_PERFMON.
std::vector<DeniedValues> denied_values(const Environment& environment,
                                        const std::vector<DeviceInfo>& devices);

}  // namespace gpumeter::intel
