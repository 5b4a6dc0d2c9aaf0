#include "collectors/intel/collector.hpp"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "collectors/api/source_report.hpp"
#include "collectors/files/discovery.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::intel {
namespace {

/// A line "\t56a5  DG2 [Arc A380]" of a vendor's part of pci.ids.
std::optional<std::string_view> name_in(std::string_view line, std::uint16_t device) {
  if (!line.starts_with('\t') || line.starts_with("\t\t")) return std::nullopt;
  line.remove_prefix(1);
  if (parse_number<std::uint16_t>(take_until(line, ' '), 16) != device) return std::nullopt;
  return trimmed(line);
}

bool starts_vendor(std::string_view line) {
  return !line.empty() && line.front() != '\t' && line.front() != '#';
}

/// "DG2 [Arc A380]" -> "Intel Arc A380": the name on the box is in brackets.
std::string marketing_name(std::string_view name) {
  const std::size_t open = name.rfind('[');
  if (open != std::string_view::npos && name.ends_with(']')) {
    name = name.substr(open + 1, name.size() - open - 2);
  }
  return name.starts_with("Intel") ? std::string(name) : "Intel " + std::string(name);
}

constexpr int kLevels = 2;                 // the card's switch: a downstream and an upstream port
constexpr std::uint32_t kBridge = 0x0604;  // base class and sub-class of a PCI-to-PCI bridge

/// The highest link of a port; its current link if the file of the highest is missing.
struct Link {
  std::optional<int> generation;
  std::int64_t lanes = 0;
};

Link link_of(const std::string& folder) {
  const auto text = [&](const char* what) {
    const std::string highest = sysfs::read_text(folder + "/max_link_" + what);
    return highest.empty() ? sysfs::read_text(folder + "/current_link_" + what) : highest;
  };
  return {pci::link_generation(text("speed")), sysfs::parse_integer(text("width")).value_or(0)};
}

bool is_link(const Link& link) noexcept { return link.generation && link.lanes > 0; }
bool is_internal(const Link& link) noexcept { return link.generation == 1 && link.lanes == 1; }

std::optional<pci::Function> parent_of(const pci::Function& function) {
  return pci::read_function(std::filesystem::path(function.path).parent_path().string());
}

}  // namespace

std::string product_name(const std::string& ids_file, std::uint16_t device) {
  std::ifstream file(ids_file);
  bool is_intel = false;
  for (std::string line; std::getline(file, line);) {
    if (starts_vendor(line)) {
      if (is_intel) return "";
      is_intel = line.starts_with("8086 ");
    }
    if (!is_intel) continue;
    if (const auto name = name_in(line, device)) return marketing_name(*name);
  }
  return "";
}

DeviceInfo identify(const pci::Function& function, const drm::NodeMap& nodes, std::string model) {
  const drm::Nodes found = nodes.of(function);
  const std::optional<int> minor = found.render ? found.render : found.card;
  DeviceInfo info = files::described(function);
  info.vendor = "intel";
  info.model = std::move(model);
  info.minor = minor ? std::to_string(*minor) : "";
  return info;
}

std::optional<std::string> slot_port(const pci::Function& function) {
  pci::Function port = function;
  for (int level = 0; level <= kLevels; ++level) {
    const Link link = link_of(port.path);
    if (!is_link(link)) return std::nullopt;
    if (!is_internal(link)) return port.path;
    const std::optional<pci::Function> above = parent_of(port);
    if (!above || above->vendor != function.vendor || above->class_code >> 8 != kBridge) return std::nullopt;
    port = *above;
  }
  return std::nullopt;
}

namespace {

bool is_ours(const pci::Function& function) { return function.driver == "i915" || function.driver == "xe"; }

/// "Intel 56a5": the model of a device that the list lacks.
std::string number_name(std::uint16_t device) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "Intel %04x", device);
  return text.data();
}

/// An NPU is no GPU.
bool is_gpu(const pci::Function& function) {
  constexpr std::uint16_t kVendorIntel = 0x8086;
  constexpr std::uint32_t kBaseDisplay = 0x03;
  return function.vendor == kVendorIntel && (function.class_code >> 16 == kBaseDisplay || is_ours(function));
}

bool exists(const std::string& path) { return sysfs::File(path).status() != ReadStatus::gone; }

/// A virtual function that this machine shows beside its card (SR-IOV) is not read: the card's values include
/// it.
std::string note_of(const pci::Function& function) {
  const std::string card = pci::to_string(function.address) + ": Intel GPU ";
  if (function.driver.empty()) return card + "without a driver: load xe or i915 (modprobe xe)";
  if (!is_ours(function)) {
    return card + "is bound to " + function.driver + ", so it is not read; xe or i915 would make it readable";
  }
  if (exists(function.path + "/physfn")) {
    return card + "is a virtual function of another one, whose values include it";
  }
  // Documentation/gpu/xe/xe_survivability.rst: the card starts without its firmware and computes nothing.
  if (exists(function.path + "/survivability_mode")) {
    return card + "is in survivability mode, so it is not read: install its firmware again (fwupdmgr)";
  }
  return "";
}

constexpr files::PciFinder::Vendor kVendor = {"find-intel-gpu", is_gpu, note_of, ""};

/// The events of the engines: none of them is opened, since that could wake the card.
SourceReport events_report(const Environment& environment, const DeviceInfo& info) {
  const std::string folder = pmu::find_folder(environment.roots.sysfs, info.driver, info.pci_address);
  SourceReport report =
      files::report_of("engine events", folder.empty() ? "" : folder + "/type",
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
  using files::report_of;
  const std::vector<Gt> gts = find_gts(info.source);
  const Gt gt = gts.empty() ? Gt() : gts.front();
  std::error_code error;
  const bool has_render = std::filesystem::exists(info.source + "/drm/renderD" + info.minor, error);
  return {
      report_of("clocks", gt.act_freq, "the driver reports none"),
      report_of("idle time", gt.idle_ms, "the driver reports none"),
      report_of("throttle reasons", gt.throttle_folder, "chips before Gen11 have none"),
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
  IntelCollector(const CollectorContext& context, std::string ids_file)
      : environment_(environment_of({context.sysfs_root, context.procfs_root, context.drm_users})),
        ids_file_(std::move(ids_file)),
        cards_(context.sysfs_root, kVendor, *context.clock, context.hanging) {}

  // The list of PCI ids is long and changes rarely: a card's model is looked up once.
  Result<Discovery> discover() override {
    const std::string& sysfs = environment_.roots.sysfs;
    if (const Result<Done> tree = files::has_sysfs(sysfs); !tree) return tree.error();
    Discovery found = cards_.find([ids = ids_file_, nodes = drm::NodeMap(sysfs)](
                                      const pci::Function& function, const DeviceInfo& known) {
      std::string model = known.driver == function.driver ? known.model : "";
      if (model.empty()) model = product_name(ids, function.device);
      if (model.empty()) model = number_name(function.device);
      return std::optional(identify(function, nodes, std::move(model)));
    });
    found.denied = denied_values(environment_, found.devices);
    if (!found.denied.empty()) found.notes.push_back(pmu::denial_note());
    return found;
  }

  std::unique_ptr<Device> device(const DeviceInfo& info) override {
    return intel_device(environment_, info.driver);
  }

  std::vector<SourceReport> sources_of(const DeviceInfo& info) const override {
    return sources_of_card(environment_, info);
  }

 private:
  const Environment environment_;
  const std::string ids_file_;
  files::PciFinder cards_;
};

}  // namespace

Result<std::unique_ptr<Collector>> open_intel(const CollectorContext& context) {
  return std::unique_ptr<Collector>(
      std::make_unique<IntelCollector>(context, option(context, kIntelOptions[0])));
}

}  // namespace gpumeter::intel
