#include "collectors/amd/amd_collector.hpp"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "collectors/amd/amd_identity.hpp"
#include "collectors/amd/amd_metrics.hpp"
#include "collectors/amd/amd_sources.hpp"
#include "collectors/support/drm.hpp"
#include "collectors/support/listing_device.hpp"
#include "collectors/support/pci.hpp"

namespace gpumeter::amd {
namespace {

/// Why a card without our drivers is not read, and what would help.
std::string note_of(const pci::Function& function) {
  const std::string card = pci::to_string(function.address) + ": AMD GPU ";
  if (function.driver.empty()) return card + "without a driver: load amdgpu (modprobe amdgpu)";
  return card + "is bound to " + function.driver + ", so it is not read; amdgpu would make it readable";
}

class AmdCollector final : public Collector, public ReportsSources {
 public:
  AmdCollector(std::string sysfs_root, std::string ids_file)
      : sysfs_root_(std::move(sysfs_root)), ids_file_(std::move(ids_file)) {}

  Result<Discovery> discover() override {
    std::error_code error;
    if (!std::filesystem::is_directory(sysfs_root_, error))
      return Error(sysfs_root_ + ": not there; is sysfs mounted?");
    const IdentitySources sources{sysfs_root_, ids_file_, drm::NodeMap(sysfs_root_), kfd_nodes(sysfs_root_)};
    Discovery found;
    for (const pci::Function& function : pci::display_adapters(sysfs_root_)) {
      if (function.vendor != pci::kVendorAmd) continue;
      if (function.driver != "amdgpu" && function.driver != "radeon") {
        found.notes.push_back(note_of(function));
      } else if (hides_uuid(function)) {
        found.notes.push_back(pci::to_string(function.address) +
                              ": its unique_id cannot be read, as while the GPU is being reset; tried again");
      } else {
        found.devices.push_back(identify(function, sources));
      }
    }
    separate_twins(found.devices, found.notes);
    return found;
  }

  std::unique_ptr<Device> device(const DeviceInfo&) override {
    return std::make_unique<ListingDevice<AmdContext>>(AmdContext(sysfs_root_), amd_rows(),
                                                       amd_partition_rows());
  }

  std::vector<SourceReport> sources_of(const DeviceInfo& info) const override {
    return sources_of_card(sysfs_root_, info);
  }

 private:
  const std::string sysfs_root_;
  const std::string ids_file_;
};

}  // namespace

Result<std::unique_ptr<Collector>> open_amd(const CollectorContext& context) {
  std::unique_ptr<Collector> collector =
      std::make_unique<AmdCollector>(context.sysfs_root, option(context, kAmdOptions[0]));
  return collector;
}

}  // namespace gpumeter::amd
