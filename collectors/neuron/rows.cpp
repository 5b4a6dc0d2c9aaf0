#include "collectors/neuron/rows.hpp"

#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/neuron/topology.hpp"

/// The nodes of the Neuron driver (aws-neuron-sdk, tools/neuron-sys-tools/neuron-sysfs-user-guide.rst).
/// Driver 2.31 moved nodes to other folders, so each row names its node and the folder next to it, wherever
/// they are below the device. `total` is the present value of a memory node, and the count of any other.
/// Every node can be set to 0 by a write, so counters may restart.
namespace gpumeter::neuron {
namespace {

using enum Tier;
using namespace tree;
using gpumeter::Traits;

// clang-format off
constexpr auto kRows = std::to_array<Row>({
    {&catalog::busy_seconds, {}, busiest("**/nc_time_in_use"), kMicro, fast, {}, kPositive},
    {&catalog::utilization, {}, busiest_share("**/nc_time_in_use"), 1, fast, Derived{}.with(kUtilizationExtremes), kShare},
    // Older drivers have no total of the categories.
    {&catalog::memory_used, {"memory", "vram"}, sum("**/device_mem/total"), 1, normal, {}, kPositive},
    {&catalog::memory_used, {"memory", "vram"}, sum("**/device_mem/*/total"), 1, normal, {}, kPositive},
    {&catalog::memory_used, {"memory", "gtt"}, sum("**/host_mem/total"), 1, normal, {}, kPositive},
    {&catalog::memory_used, {"memory", "gtt"}, sum("**/host_mem/*/total"), 1, normal, {}, kPositive},
    {&catalog::power_utilization, {}, field("**/power/utilization: POWER_STATUS_VALID", 4), kPercent, normal, {}, kRatio},
    {&catalog::memory_errors, {"severity", "uncorrected", "location", "hbm"}, sum("**/mem_ecc_uncorrected"), 1, slow, {}, kPositive},
    {&catalog::memory_errors, {"severity", "uncorrected", "location", "hbm"}, sum("**/mem_ecc_uncorrected/total"), 1, slow, {}, kPositive},
    {&catalog::memory_errors, {"severity", "uncorrected", "location", "hbm_repairable"}, sum("**/mem_ecc_repairable_uncorrected"), 1, slow, {}, kPositive},
    {&catalog::memory_errors, {"severity", "uncorrected", "location", "hbm_repairable"}, sum("**/mem_ecc_repairable_uncorrected/total"), 1, slow, {}, kPositive},
    {&catalog::memory_errors, {"severity", "uncorrected", "location", "sram"}, sum("**/sram_ecc_uncorrected"), 1, slow, {}, kPositive},
    {&catalog::memory_errors, {"severity", "uncorrected", "location", "sram"}, sum("**/sram_ecc_uncorrected/total"), 1, slow, {}, kPositive},
    {&catalog::hardware_errors, {"block", "core", "severity", "uncorrected"}, sum("**/hw_error/total"), 1, normal, {}, kPositive},
    {&catalog::events, {"event", "reset"}, sum("**/reset_req_count"), 1, normal, {}, kPositive},
    {&catalog::events, {"event", "reset"}, sum("**/reset_req_count/total"), 1, normal, {}, kPositive},
    {&catalog::events, {"event", "reset_failed"}, sum("**/reset_fail_count"), 1, normal, {}, kPositive},
    {&catalog::events, {"event", "reset_failed"}, sum("**/reset_fail_count/total"), 1, normal, {}, kPositive},
    {&catalog::events, {"event", "timeout"}, sum("**/status/timeout/total"), 1, normal, {}, kPositive},
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
  return Row{&catalog::memory_category_used, {"memory", "vram", "category", category_of(name)}, sum(name), 1, normal, {}, kPositive};
});

constexpr auto kCoreRows = std::to_array<Row>({
    {&catalog::partition_busy_seconds, {}, busiest("slice/**/nc_time_in_use"), kMicro, fast, {}, kPositive},
    {&catalog::partition_utilization, {}, busiest_share("slice/**/nc_time_in_use"), 1, fast, {}, kShare},
    {&catalog::partition_memory_used, {}, sum("slice/**/device_mem/total"), 1, normal, {}, kPositive},
    {&catalog::partition_memory_used, {}, sum("slice/**/device_mem/*/total"), 1, normal, {}, kPositive},
});
// clang-format on

constexpr auto kTable = joined(kRows, kCategoryRows);
static_assert(valid_table(kTable) && valid_table(kCoreRows));

constexpr Kind kKind = {
    kTable,
    kCoreRows,
    {.slices = "**/neuron_core*", .slice_kind = "core", .info_series = connected_devices},
};

}  // namespace

const Kind& neuron_kind() noexcept { return kKind; }

std::span<const RowDoc> neuron_row_docs() {
  static const std::vector<RowDoc> docs = row_docs<TreeContext>({kTable, kCoreRows});
  return docs;
}

}  // namespace gpumeter::neuron
