#include "collectors/amd/collector.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bounded_calls.hpp"
#include "base/text.hpp"
#include "collectors/api/event_source.hpp"
#include "collectors/api/source_report.hpp"
#include "collectors/files/discovery.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::amd {
namespace {

/// One line "73BF,\tC0,\tAMD Radeon RX 6900 XT" of amdgpu.ids.
struct IdLine {
  unsigned device = 0;
  unsigned revision = 0;
  std::string_view name;
};

// Comments and the version line do not start with two numbers.
std::optional<IdLine> parse_id_line(std::string_view line) {
  const auto device = parse_number<unsigned>(trimmed(take_until(line, ',')), 16);
  const auto revision = parse_number<unsigned>(trimmed(take_until(line, ',')), 16);
  const std::string_view name = trimmed(line);
  if (!device || !revision || name.empty()) return std::nullopt;
  return IdLine{*device, *revision, name};
}

std::string model_of(const pci::Function& function, const std::string& ids_file) {
  std::string name = marketing_name(ids_file, function.device, function.revision);
  if (name.empty()) name = sysfs::read_text(function.path + "/product_name");  // from the board's EEPROM
  if (!name.empty()) return name;
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "AMD %04x", function.device);
  return text.data();
}

std::vector<std::string> linked_to(const std::vector<KfdNode>& card, const std::vector<KfdLink>& links) {
  std::vector<std::string> addresses;
  for (const KfdLink& link : links) {
    const auto is_its = [&](const KfdNode& node) { return node.address == link.from; };
    if (std::any_of(card.begin(), card.end(), is_its)) addresses.push_back(pci::to_string(link.to));
  }
  return addresses;
}

}  // namespace

std::string marketing_name(const std::string& ids_file, std::uint16_t device,
                           std::optional<std::uint8_t> revision) {
  std::ifstream file(ids_file);
  std::set<std::string, std::less<>> names;
  for (std::string text; std::getline(file, text);) {
    const std::optional<IdLine> line = parse_id_line(text);
    if (!line || line->device != device) continue;
    if (revision && line->revision == *revision) return std::string(line->name);
    names.emplace(line->name);
  }
  return !revision && names.size() == 1 ? *names.begin() : std::string();
}

std::string uuid_of(const pci::Function& function) {
  const std::string id = sysfs::read_text(function.path + "/unique_id");
  const bool none = id.find_first_not_of('0') == std::string::npos;  // empty, "0" and all zeros
  return none ? pci::to_string(function.address) : "GPU-" + id;
}

std::string smc_version(std::string_view text) {
  const std::optional<std::int64_t> version = sysfs::parse_integer(text);
  if (!version || *version <= 0 || *version > 0xffffffff) return "";
  std::array<char, 16> dotted{};  // the highest byte is a program number, which the driver's log omits too
  std::snprintf(dotted.data(), dotted.size(), "%d.%d.%d", static_cast<int>(*version >> 16 & 0xff),
                static_cast<int>(*version >> 8 & 0xff), static_cast<int>(*version & 0xff));
  return dotted.data();
}

DeviceInfo identify(const pci::Function& function, const IdentitySources& sources) {
  const drm::Nodes nodes = sources.nodes.of(function);
  const std::optional<int> minor = nodes.render ? nodes.render : nodes.card;
  DeviceInfo info = files::described(function);
  info.uuid = uuid_of(function);
  info.vendor = "amd";
  info.model = model_of(function, sources.ids_file);
  info.serial = sysfs::read_text(function.path + "/serial_number");
  info.driver_version = sysfs::read_text(sources.sysfs_root + "/module/" + function.driver + "/version");
  info.vbios_version = sysfs::read_text(function.path + "/vbios_version");
  info.firmware_version = smc_version(sysfs::read_text(function.path + "/fw_version/smc_fw_version"));
  info.minor = minor ? std::to_string(*minor) : "";
  info.partitioning = to_string(partition_modes(function.path));
  const std::vector<KfdNode> card =
      kfd_nodes_of(sources.kfd, {function.address, function.device, nodes.render});
  info.linked_to = linked_to(card, sources.links);
  if (const auto node = kfd_whole(card)) {
    info.architecture = architecture_name(node->target);
    info.compute_units = node->compute_units;
  }
  return info;
}

void separate_twins(std::vector<DeviceInfo>& devices, std::vector<std::string>& notes) {
  std::set<std::string, std::less<>> seen;
  for (DeviceInfo& device : devices) {
    if (seen.insert(device.uuid).second) continue;
    notes.push_back(device.pci_address + ": another card has the unique_id of " + device.uuid +
                    ", so this one is identified by its PCI address");
    device.uuid = device.pci_address;
  }
}

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

/// True while the driver refuses to return the uuid. The read fails with EPERM during a GPU reset (kernel
/// 6.12, amdgpu_pm.c), and the card must keep its name during the reset.
bool hides_uuid(const pci::Function& function) {
  const sysfs::File file(function.path + "/unique_id");
  if (file.status() == ReadStatus::gone) return false;  // an older chip
  std::array<char, 32> buffer{};
  return file.read(buffer).status != ReadStatus::ok;
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
