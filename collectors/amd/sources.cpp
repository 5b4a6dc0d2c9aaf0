#include "collectors/amd/sources.hpp"

#include <string_view>

#include "collectors/amd/paths.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::amd {
namespace {

struct Source {
  std::string_view what;
  std::string_view name;     ///< as in AmdPaths
  std::string_view missing;  ///< why it may not be there
};
constexpr Source kSources[] = {
    {"utilization", "gpu_busy_percent",
     "amdgpu has it of chips with dynamic power management, radeon of none"},
    {"memory", "mem_info_vram_total", "amdgpu has it of every chip, radeon of none"},
    {"sensors", "hwmon/name", "needs a kernel with CONFIG_HWMON"},
    {"gpu_metrics", "gpu_metrics", "chips before Vega have none"},
    {"clock limits", "pp_dpm_sclk", "not of chips whose power management is off, nor in a virtual machine"},
    {"memory errors", "ras/features", "only of chips and boards with ECC memory"},
    {"pcie errors", "aer_dev_fatal",
     "needs a kernel with CONFIG_PCIEAER and a root port that reports errors"},
};

constexpr std::string_view kDenied = "let the user that gpumeter runs as read it";

SourceReport report_of(const std::string& path, const Source& source) {
  const ReadStatus opened = sysfs::File(path).status();
  const ReadStatus status = opened == ReadStatus::gone ? ReadStatus::unsupported : opened;
  const bool is_denied = status == ReadStatus::denied;
  const std::string_view remedy = status == ReadStatus::ok ? "" : is_denied ? kDenied : source.missing;
  return {std::string(source.what), path, status, std::string(remedy)};
}

}  // namespace

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

}  // namespace gpumeter::amd
