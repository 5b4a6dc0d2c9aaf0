#include "collectors/amd/collector.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bounded_calls.hpp"
#include "collectors/amd/identity.hpp"
#include "collectors/api/event_source.hpp"
#include "collectors/api/source_report.hpp"
#include "collectors/files/discovery.hpp"

namespace gpumeter::amd {
namespace {

bool is_ours(const pci::Function& function) {
  return function.driver == "amdgpu" || function.driver == "radeon";
}

/// The reason why a card without a supported driver is not read, and the remedy.
std::string note_of(const pci::Function& function) {
  if (is_ours(function)) return "";
  const std::string card = pci::to_string(function.address) + ": AMD GPU ";
  if (function.driver.empty()) return card + "without a driver: load amdgpu (modprobe amdgpu)";
  return card + "is bound to " + function.driver + ", so it is not read; amdgpu would make it readable";
}

constexpr files::PciFinder::Vendor kVendor = {
    "find-amd-card", [](const pci::Function& function) { return function.vendor == pci::kVendorAmd; },
    note_of, "its unique_id cannot be read, as during a GPU reset; retried"};

/// The sources that identify all cards. The compute driver's topology is one tree for all of them. If its
/// read hangs, the previous tree stays in force. Discovery thread.
class TopologyReader {
 public:
  using Sources = std::shared_ptr<const IdentitySources>;

  TopologyReader(std::string sysfs_root, std::string ids_file, const Clock& clock,
                 const std::shared_ptr<HangingCalls>& hanging)
      : sysfs_root_(std::move(sysfs_root)),
        ids_file_(std::move(ids_file)),
        calls_(kVendor.thread, files::kIdentityAtMost, clock, hanging, "topology") {}

  Sources read() {
    auto answers =
        calls_.ask<Sources>({"topology"}, [root = sysfs_root_, ids = ids_file_](const std::string&) {
          std::vector<KfdNode> nodes = kfd_nodes(root);
          std::vector<KfdLink> links = kfd_links(root, nodes);
          return std::make_shared<const IdentitySources>(
              IdentitySources{root, ids, drm::NodeMap(root), std::move(nodes), std::move(links)});
        });
    if (answers.silent.empty()) known_ = std::move(answers.values.begin()->second);
    if (known_) return known_;
    return std::make_shared<const IdentitySources>(IdentitySources{sysfs_root_, ids_file_, {}, {}, {}});
  }

 private:
  const std::string sysfs_root_;
  const std::string ids_file_;
  BoundedCalls calls_;
  Sources known_;
};

struct CardSource {
  std::string_view what;
  std::string_view name;     ///< as in files::Paths
  std::string_view missing;  ///< why the source may be missing
};
constexpr CardSource kSources[] = {
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

/// The card's sources, each represented by one file.
std::vector<SourceReport> sources_of_card(const std::string& sysfs_root, const DeviceInfo& info) {
  std::vector<SourceReport> reports;
  for (const CardSource& source : kSources) {
    reports.push_back(files::report_of(source.what, path_of(info.source, source.name), source.missing));
  }
  reports.push_back(files::report_of("compute units", sysfs_root + "/class/kfd/kfd/topology/nodes",
                                     "needs a kernel with CONFIG_HSA_AMD"));
  return reports;
}

class AmdCollector : public Collector, public ReportsSources {
 public:
  AmdCollector(const CollectorContext& context, const std::string& ids_file, AmdOptions options)
      : roots_{context.sysfs_root, context.procfs_root, context.drm_users},
        options_(std::move(options)),
        topology_(context.sysfs_root, ids_file, *context.clock, context.hanging),
        cards_(context.sysfs_root, kVendor, *context.clock, context.hanging) {}

  Result<Discovery> discover() override {
    if (const Result<Done> tree = files::has_sysfs(roots_.sysfs); !tree) return tree.error();
    Discovery found =
        cards_.find([sources = topology_.read()](const pci::Function& function, const DeviceInfo&) {
          return hides_uuid(function) ? std::nullopt : std::optional(identify(function, *sources));
        });
    separate_twins(found.devices, found.notes);
    return found;
  }

  std::unique_ptr<Device> device(const DeviceInfo& info) override {
    return amd_device(roots_, options_, info.driver);
  }

  std::vector<SourceReport> sources_of(const DeviceInfo& info) const override {
    return sources_of_card(roots_.sysfs, info);
  }

 private:
  const files::Roots roots_;
  const AmdOptions options_;
  TopologyReader topology_;
  files::PciFinder cards_;
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
  AmdOptions options{.each_link = option(context, kAmdOptions[1]) == "each"};
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
