#include "collectors/neuron/collector.hpp"

#include <filesystem>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/files/context.hpp"
#include "collectors/files/discovery.hpp"
#include "collectors/files/readers.hpp"
#include "collectors/sources/sysfs.hpp"

/// The nodes of the Neuron driver (aws-neuron-sdk, tools/neuron-sys-tools/neuron-sysfs-user-guide.rst).
/// Driver 2.31 moved nodes to other folders, so each row names its node and the folder next to it, wherever
/// they are below the device. `total` is the present value of a memory node, and the count of any other.
/// Every node can be set to 0 by a write, so counters may restart.
namespace gpumeter::neuron {

std::vector<int> device_numbers(std::string_view list) {
  std::vector<int> numbers;
  while (!list.empty()) {
    const auto number = parse_number<int>(trimmed(take_until(list, ',')));
    if (number && *number >= 0) numbers.push_back(*number);
  }
  return numbers;
}

namespace {

using enum Tier;
using namespace files;

// clang-format off
constexpr auto kDeviceRows = std::to_array<Row>({
    {&catalog::busy_seconds, {}, {busiest, "**/nc_time_in_use"}, kMicro, fast, {}, kPositive},
    {&catalog::utilization, {}, {busiest_share, "**/nc_time_in_use"}, 1, fast, Derived{}.with(kUtilizationExtremes), kShare},
    // Older drivers have no total of the categories.
    {&catalog::memory_used, {"memory", "vram"}, {sum, "**/device_mem/total"}, 1, normal, {}, kPositive},
    {&catalog::memory_used, {"memory", "vram"}, {sum, "**/device_mem/*/total"}, 1, normal, {}, kPositive},
    {&catalog::memory_used, {"memory", "gtt"}, {sum, "**/host_mem/total"}, 1, normal, {}, kPositive},
    {&catalog::memory_used, {"memory", "gtt"}, {sum, "**/host_mem/*/total"}, 1, normal, {}, kPositive},
    {&catalog::power_utilization, {}, {field, "**/power/utilization: POWER_STATUS_VALID", 4}, kPercent, normal, {}, kRatio},
    {&catalog::memory_errors, {"severity", "uncorrected", "location", "hbm"}, {sum, "**/mem_ecc_uncorrected"}, 1, slow, {}, kPositive},
    {&catalog::memory_errors, {"severity", "uncorrected", "location", "hbm"}, {sum, "**/mem_ecc_uncorrected/total"}, 1, slow, {}, kPositive},
    {&catalog::memory_errors, {"severity", "uncorrected", "location", "hbm_repairable"}, {sum, "**/mem_ecc_repairable_uncorrected"}, 1, slow, {}, kPositive},
    {&catalog::memory_errors, {"severity", "uncorrected", "location", "hbm_repairable"}, {sum, "**/mem_ecc_repairable_uncorrected/total"}, 1, slow, {}, kPositive},
    {&catalog::memory_errors, {"severity", "uncorrected", "location", "sram"}, {sum, "**/sram_ecc_uncorrected"}, 1, slow, {}, kPositive},
    {&catalog::memory_errors, {"severity", "uncorrected", "location", "sram"}, {sum, "**/sram_ecc_uncorrected/total"}, 1, slow, {}, kPositive},
    {&catalog::hardware_errors, {"block", "core", "severity", "uncorrected"}, {sum, "**/hw_error/total"}, 1, normal, {}, kPositive},
    {&catalog::events, {"event", "reset"}, {sum, "**/reset_req_count"}, 1, normal, {}, kPositive},
    {&catalog::events, {"event", "reset"}, {sum, "**/reset_req_count/total"}, 1, normal, {}, kPositive},
    {&catalog::events, {"event", "reset_failed"}, {sum, "**/reset_fail_count"}, 1, normal, {}, kPositive},
    {&catalog::events, {"event", "reset_failed"}, {sum, "**/reset_fail_count/total"}, 1, normal, {}, kPositive},
    {&catalog::events, {"event", "timeout"}, {sum, "**/status/timeout/total"}, 1, normal, {}, kPositive},
});

constexpr std::string_view kCategories[] = {
    "**/device_mem/tensors/total",       "**/device_mem/constants/total",
    "**/device_mem/model_code/total",    "**/device_mem/collectives/total",
    "**/device_mem/runtime_memory/total", "**/device_mem/dma_rings/total",
    "**/device_mem/driver_memory/total", "**/device_mem/notifications/total",
    "**/device_mem/model_shared_scratchpad/total", "**/device_mem/nonshared_scratchpad/total",
    "**/device_mem/uncategorized/total"};

constexpr std::string_view category_of(std::string_view name) {
  name.remove_suffix(std::string_view("/total").size());
  return name.substr(name.rfind('/') + 1);
}
constexpr auto kCategoryRows = each(kCategories, [](std::string_view name) {
  return Row{&catalog::memory_category_used, {"memory", "vram", "category", category_of(name)}, {sum, name}, 1, normal, {}, kPositive};
});

constexpr auto kCoreRows = std::to_array<Row>({
    {&catalog::partition_busy_seconds, {}, {busiest, "slice/**/nc_time_in_use"}, kMicro, fast, {}, kPositive},
    {&catalog::partition_utilization, {}, {busiest_share, "slice/**/nc_time_in_use"}, 1, fast, {}, kShare},
    {&catalog::partition_memory_used, {}, {sum, "slice/**/device_mem/total"}, 1, normal, {}, kPositive},
    {&catalog::partition_memory_used, {}, {sum, "slice/**/device_mem/*/total"}, 1, normal, {}, kPositive},
});
// clang-format on

constexpr auto kTable = joined(kDeviceRows, kCategoryRows);
static_assert(valid_table(kTable) && valid_table(kCoreRows));

constexpr const char* kFolder = "/devices/virtual/neuron_device";
constexpr std::string_view kPrefix = "neuron";  // of the name "neuronN"

/// The serial number, or the name ("neuron0") if it is none, as zeros are.
std::string uuid_of(const std::string& folder, const FileIndex& index) {
  const std::string serial = index.text("serial_number");
  const bool has_none = serial.find_first_not_of("0x") == std::string::npos;
  return has_none ? std::filesystem::path(folder).filename().string() : "neuron-" + serial;
}

/// gpu_topology_info of each neighbour that the driver lists.
std::vector<SeriesSpec> connected_devices(const DeviceInfo& info) {
  std::vector<SeriesSpec> series;
  const std::string list = FileIndex(info.source).text("connected_devices");
  const std::filesystem::path all = std::filesystem::path(info.source).parent_path();
  for (const int number : device_numbers(list)) {
    const std::string peer = (all / (std::string(kPrefix) + std::to_string(number))).string();
    if (sysfs::list(peer).empty()) continue;
    series.push_back({&catalog::topology_info, {{"peer", uuid_of(peer, FileIndex(peer))}, {"path", "link"}}});
  }
  return series;
}

DeviceInfo identify(const std::string& sysfs_root, const std::string& name) {
  const std::string folder = sysfs_root + kFolder + "/" + name;
  const FileIndex index(folder);
  DeviceInfo info;
  info.uuid = uuid_of(folder, index);
  info.vendor = "aws";
  info.model = index.text("architecture/device_name");
  if (info.model.empty()) info.model = index.text("architecture/device_type");
  if (info.model.empty()) info.model = "Neuron";
  info.serial = index.text("serial_number");
  info.driver = "neuron";
  info.driver_version = sysfs::read_text(sysfs_root + "/module/neuron/version");
  info.architecture = index.text("architecture/arch_type");
  info.vendor_index = name.substr(kPrefix.size());
  info.minor = info.vendor_index;  // of /dev/neuronN
  if (const auto cores = sysfs::parse_integer(index.text("core_count")); cores && *cores > 0)
    info.compute_units = static_cast<int>(*cores);
  info.source = folder;
  return info;
}

bool is_device(std::string_view name) {
  return name.starts_with(kPrefix) && parse_number<int>(name.substr(kPrefix.size())).has_value();
}

constexpr Kind kNeuronKind = {.rows = kTable,
                              .slice_rows = kCoreRows,
                              .slices = "**/neuron_core*",
                              .slice_kind = "core",
                              .info_series = connected_devices};

class NeuronCollector final : public Collector {
 public:
  explicit NeuronCollector(const CollectorContext& context)
      : roots_{context.sysfs_root, context.procfs_root},
        devices_("find-neuron", *context.clock, context.hanging) {}

  Result<Discovery> discover() override {
    std::vector<std::string> names = sysfs::list(roots_.sysfs + kFolder);
    std::erase_if(names, [](const std::string& name) { return !is_device(name); });
    Discovery found;
    devices_.identify(
        names, {}, [root = roots_.sysfs](const std::string& name) { return identify(root, name); }, found);
    return found;
  }

  std::unique_ptr<Device> device(const DeviceInfo&) override { return make_device(kNeuronKind, roots_); }

 private:
  const Roots roots_;
  Identifier devices_;
};

}  // namespace

std::span<const RowDoc> neuron_row_docs() {
  static const std::vector<RowDoc> docs = row_docs<Context>({kTable, kCoreRows});
  return docs;
}

Result<std::unique_ptr<Collector>> open_neuron(const CollectorContext& context) {
  return std::unique_ptr<Collector>(std::make_unique<NeuronCollector>(context));
}

}  // namespace gpumeter::neuron
