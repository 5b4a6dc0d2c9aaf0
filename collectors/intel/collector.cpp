#include "collectors/intel/collector.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "collectors/api/source_report.hpp"
#include "collectors/intel/discovery.hpp"
#include "collectors/intel/environment.hpp"
#include "collectors/intel/gts.hpp"
#include "collectors/intel/metrics.hpp"
#include "collectors/intel/pmu/engine_meter.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/table/device.hpp"

namespace gpumeter::intel {
namespace {

/// The outcome of opening `path`; a file that is missing is `unsupported`.
SourceReport report_of(std::string what, const std::string& path, std::string missing) {
  const ReadStatus opened = path.empty() ? ReadStatus::gone : sysfs::File(path).status();
  const ReadStatus status = opened == ReadStatus::gone ? ReadStatus::unsupported : opened;
  std::string remedy = status == ReadStatus::ok       ? ""
                       : status == ReadStatus::denied ? "allow gpumeter's user to read it"
                                                      : std::move(missing);
  return {std::move(what), path, status, std::move(remedy)};
}

/// The events of the engines: none of them is opened, since that could wake the card.
SourceReport events_report(const Environment& environment, const DeviceInfo& info) {
  const std::string folder = pmu::find_folder(environment.sysfs_root, info.driver, info.pci_address);
  SourceReport report = report_of("engine events", folder.empty() ? "" : folder + "/type",
                                  "needs a kernel with CONFIG_PERF_EVENTS; xe has engine events since 6.16");
  if (report.status != ReadStatus::ok || !environment.pmu) return report;
  report.status = pmu::permission(*environment.pmu);
  if (report.status != ReadStatus::ok) report.remedy = "needs CAP_PERFMON: the drop-in pmu.conf grants it";
  return report;
}

/// The memory in use, of which the drivers say 0 without the capability.
SourceReport used_memory_report(const Environment& environment) {
  if (environment.may_see_use) return {"used memory", "", ReadStatus::ok, ""};
  return {"used memory", "", ReadStatus::denied, "needs CAP_PERFMON: the drop-in pmu.conf grants it"};
}

std::vector<SourceReport> sources_of_card(const Environment& environment, const DeviceInfo& info) {
  const std::vector<Gt> gts = find_gts(info.source);
  std::error_code error;
  const bool has_render = std::filesystem::exists(info.source + "/drm/renderD" + info.minor, error);
  return {
      report_of("clocks", gts.empty() ? "" : gts.front().act_freq, "the driver reports none"),
      report_of("idle time", gts.empty() ? "" : gts.front().idle_ms, "the driver reports none"),
      report_of("throttle reasons", gts.empty() ? "" : gts.front().throttle_folder,
                "chips before Gen11 have none"),
      report_of("sensors", info.source + "/hwmon", "graphics in the processor have none"),
      events_report(environment, info),
      report_of("memory", has_render && environment.query_memory ? "/dev/dri/renderD" + info.minor : "",
                "needs the node of the card in /dev/dri"),
      used_memory_report(environment),
      report_of("pcie errors", info.source + "/aer_dev_fatal",
                "needs a kernel with CONFIG_PCIEAER and a root port that reports errors"),
  };
}

class IntelCollector final : public Collector, public ReportsSources {
 public:
  IntelCollector(const CollectorContext& context, const std::string& ids_file)
      : environment_(environment_of(context.sysfs_root, context.drm_users)),
        discovery_(context.sysfs_root, ids_file, *context.clock, context.hanging) {}

  Result<Discovery> discover() override {
    std::error_code error;
    if (!std::filesystem::is_directory(environment_.sysfs_root, error))
      return Error(environment_.sysfs_root + ": does not exist; is sysfs mounted?");
    Discovery found = discovery_.find();
    found.denied = denied_values(environment_, found.devices);
    if (!found.denied.empty()) found.notes.push_back(pmu::denial_note());
    return found;
  }

  std::unique_ptr<Device> device(const DeviceInfo&) override {
    return std::make_unique<ListingDevice<IntelContext>>(IntelContext(environment_), intel_rows());
  }

  std::vector<SourceReport> sources_of(const DeviceInfo& info) const override {
    return sources_of_card(environment_, info);
  }

 private:
  const Environment environment_;
  IntelDiscovery discovery_;
};

}  // namespace

Result<std::unique_ptr<Collector>> open_intel(const CollectorContext& context) {
  std::unique_ptr<Collector> collector =
      std::make_unique<IntelCollector>(context, option(context, kIntelOptions[0]));
  return collector;
}

}  // namespace gpumeter::intel
