#include "collectors/amd/collector.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "collectors/amd/discovery.hpp"
#include "collectors/amd/events/listener.hpp"
#include "collectors/amd/metrics.hpp"
#include "collectors/amd/paths.hpp"
#include "collectors/api/event_source.hpp"
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

class AmdCollector : public Collector, public ReportsSources {
 public:
  AmdCollector(const CollectorContext& context, const std::string& ids_file, AmdOptions options)
      : sysfs_root_(context.sysfs_root),
        options_(std::move(options)),
        discovery_(context.sysfs_root, ids_file, *context.clock, context.hanging) {}

  Result<Discovery> discover() override {
    std::error_code error;
    if (!std::filesystem::is_directory(sysfs_root_, error))
      return Error(sysfs_root_ + ": does not exist; is sysfs mounted?");
    return discovery_.find();
  }

  std::unique_ptr<Device> device(const DeviceInfo&) override {
    return std::make_unique<ListingDevice<AmdContext>>(AmdContext(sysfs_root_, options_), amd_rows(),
                                                       amd_partition_rows());
  }

  std::vector<SourceReport> sources_of(const DeviceInfo& info) const override {
    return sources_of_card(sysfs_root_, info);
  }

 private:
  const std::string sysfs_root_;
  const AmdOptions options_;
  AmdDiscovery discovery_;
};

/// The collector if events are on: it has an event thread.
class AmdCollectorWithEvents final : public AmdCollector, public WatchesEvents {
 public:
  AmdCollectorWithEvents(const CollectorContext& context, const std::string& ids_file,
                         const AmdOptions& options)
      : AmdCollector(context, ids_file, options), listener_(options.events) {}

  std::vector<DeviceEvent> wait_for_events(Nanoseconds at_most) override { return listener_->wait(at_most); }

 private:
  const std::shared_ptr<EventListener> listener_;
};

std::optional<OptionProblem> check_word(const CollectorContext& context, const CollectorOption& schema,
                                        std::string_view first, std::string_view second) {
  const std::string word = option(context, schema);
  if (word == first || word == second) return std::nullopt;
  const std::string words = std::string(first) + " or " + std::string(second);
  return OptionProblem{std::string(schema.name), 0, "must be " + words + ", not \"" + word + '"'};
}

}  // namespace

std::optional<OptionProblem> check_amd(const CollectorContext& context) {
  if (auto problem = check_word(context, kAmdOptions[1], "sum", "each")) return problem;
  return check_word(context, kAmdOptions[2], "none", "kfd");
}

Result<std::unique_ptr<Collector>> open_amd(const CollectorContext& context) {
  const std::string ids_file = option(context, kAmdOptions[0]);
  AmdOptions options{.each_link = option(context, kAmdOptions[1]) == "each", .drm_users = context.drm_users};
  std::unique_ptr<Collector> collector;
  if (option(context, kAmdOptions[2]) == "kfd") {
    options.events = std::make_shared<EventListener>(std::make_unique<KfdDevice>(), *context.clock);
    collector = std::make_unique<AmdCollectorWithEvents>(context, ids_file, options);
  } else {
    collector = std::make_unique<AmdCollector>(context, ids_file, std::move(options));
  }
  return collector;
}

}  // namespace gpumeter::amd
