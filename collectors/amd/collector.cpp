#include "collectors/amd/collector.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "collectors/amd/discovery.hpp"
#include "collectors/amd/metrics.hpp"
#include "collectors/amd/paths.hpp"
#include "collectors/api/source_report.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/table/device.hpp"

namespace gpumeter::amd {
namespace {

struct Source {
  std::string_view what;
  std::string_view name;     ///< as in AmdPaths
  std::string_view missing;  ///< why the source may be missing
};
constexpr Source kSources[] = {
    {"utilization", "gpu_busy_percent",
     "amdgpu provides it for chips with dynamic power management, radeon never"},
    {"memory", "mem_info_vram_total", "amdgpu provides it for every chip, radeon never"},
    {"sensors", "hwmon/name", "needs a kernel with CONFIG_HWMON"},
    {"gpu_metrics", "gpu_metrics", "chips before Vega have none"},
    {"clock limits", "pp_dpm_sclk", "not available if power management is off, or in a virtual machine"},
    {"memory errors", "ras/features", "only on chips and boards with ECC memory"},
    {"pcie errors", "aer_dev_fatal",
     "needs a kernel with CONFIG_PCIEAER and a root port that reports errors"},
};

constexpr std::string_view kDenied = "allow gpumeter's user to read it";

SourceReport report_of(const std::string& path, const Source& source) {
  const ReadStatus opened = sysfs::File(path).status();
  const ReadStatus status = opened == ReadStatus::gone ? ReadStatus::unsupported : opened;
  const bool is_denied = status == ReadStatus::denied;
  const std::string_view remedy = status == ReadStatus::ok ? "" : is_denied ? kDenied : source.missing;
  return {std::string(source.what), path, status, std::string(remedy)};
}

/// The card's sources, each represented by one file.
std::vector<SourceReport> sources_of_card(const std::string& sysfs_root, const DeviceInfo& info) {
  AmdPaths paths(info.source);
  std::vector<SourceReport> reports;
  for (const Source& source : kSources) {
    const std::string unresolved = info.source + "/" + std::string(source.name);
    reports.push_back(report_of(paths.resolve(source.name).value_or(unresolved), source));
  }
  constexpr Source kTopology = {"compute units", "", "needs a kernel with CONFIG_HSA_AMD"};
  reports.push_back(report_of(sysfs_root + "/class/kfd/kfd/topology/nodes", kTopology));
  return reports;
}

class AmdCollector final : public Collector, public ReportsSources {
 public:
  AmdCollector(const CollectorContext& context, const std::string& ids_file)
      : sysfs_root_(context.sysfs_root),
        discovery_(context.sysfs_root, ids_file, *context.clock, context.hanging) {}

  Result<Discovery> discover() override {
    std::error_code error;
    if (!std::filesystem::is_directory(sysfs_root_, error))
      return Error(sysfs_root_ + ": does not exist; is sysfs mounted?");
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
