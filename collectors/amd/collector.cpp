#include "collectors/amd/collector.hpp"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "collectors/amd/discovery.hpp"
#include "collectors/amd/metrics.hpp"
#include "collectors/amd/sources.hpp"
#include "collectors/table/device.hpp"

namespace gpumeter::amd {
namespace {

class AmdCollector final : public Collector, public ReportsSources {
 public:
  AmdCollector(const CollectorContext& context, const std::string& ids_file)
      : sysfs_root_(context.sysfs_root),
        discovery_(context.sysfs_root, ids_file, *context.clock, context.hanging) {}

  Result<Discovery> discover() override {
    std::error_code error;
    if (!std::filesystem::is_directory(sysfs_root_, error))
      return Error(sysfs_root_ + ": not there; is sysfs mounted?");
    return discovery_.find();
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
  AmdDiscovery discovery_;
};

}  // namespace

Result<std::unique_ptr<Collector>> open_amd(const CollectorContext& context) {
  std::unique_ptr<Collector> collector =
      std::make_unique<AmdCollector>(context, option(context, kAmdOptions[0]));
  return collector;
}

}  // namespace gpumeter::amd
