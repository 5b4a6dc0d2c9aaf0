#include "collectors/nvidia/metrics.hpp"

#include <algorithm>
#include <vector>

#include "collectors/nvidia/rows/activity.hpp"
#include "collectors/nvidia/rows/health.hpp"
#include "collectors/nvidia/rows/links.hpp"
#include "collectors/nvidia/rows/sensors.hpp"

namespace gpumeter::nvidia {
namespace {

constexpr auto kTable =
    joined(kUtilizationRows, kGpmRows, kCauseTimes, kCauseRows, kReasonTimes, kReasonRows, kMemoryRows,
           kUnifiedMemoryRows, kPowerRows, kTemperatureRows, kClockRows, kClockMaxRows, kStateRows, kFanRows,
           kFanRpmRows, kPersistenceRows, kEccModeRows, kEccPendingRows, kMigModeRows, kMigPendingRows,
           kDisplayRows, kOtherModeRows, kEccRows, kMemoryHealthRows, kPcieRows, kInterconnectRows, kFecRows,
           kFabricRows, kRecoveryRows, kOtherRecoveryRows, kLicenseRows, kXidRows, kXidTimeRows, kEventRows,
           kPeakTableRows, kPeakFormulaRows, kPeakBandwidthRows);
// Rows of a MIG instance. Power, temperatures and clocks exist only for the whole GPU; processes are not
// attributed to instances here.
// clang-format off
constexpr auto kInstanceRows = std::to_array<Row>({
    {&catalog::partition_utilization, {}, gpm("GPM graphics", 1), kPercent, Tier::fast, averaged(catalog::partition_busy_seconds), kRatio},
    {&catalog::partition_engine_utilization, {"engine", "encode"}, gpm_mean("GPM NVENC", 166, 4), kPercent, Tier::fast, averaged(catalog::partition_engine_busy_seconds), kRatio},
    {&catalog::partition_engine_utilization, {"engine", "decode"}, gpm_mean("GPM NVDEC", 30, 8), kPercent, Tier::fast, averaged(catalog::partition_engine_busy_seconds), kRatio},
    {&catalog::partition_engine_utilization, {"engine", "jpeg"}, gpm_mean("GPM NVJPG", 40, 8), kPercent, Tier::fast, averaged(catalog::partition_engine_busy_seconds), kRatio},
    {&catalog::partition_engine_utilization, {"engine", "optical_flow"}, gpm_mean("GPM NVOFA", 50, 2), kPercent, Tier::fast, averaged(catalog::partition_engine_busy_seconds), kRatio},
});
// "Per instance information is currently only supported for non-DRAM uncorrectable volatile errors" (nvml.h at
// nvmlDeviceGetMemoryErrorCounter).
constexpr Location kInstanceWholes[] = {{"sram", 7}};
constexpr auto kInstanceEccRows = joined(
    each(kInstanceWholes, [](const Location& location) {
      return Row{&catalog::partition_memory_errors, {"severity", "uncorrected", "location", location.name}, ecc("nvmlDeviceGetMemoryErrorCounter", nvml::kUncorrected, nvml::kVolatile, location.id), 1, Tier::slow};
    }),
    ecc_part_rows(catalog::partition_memory_errors, nvml::kVolatile, "uncorrected", nvml::kUncorrected));

constexpr auto kInstanceMemoryRows = memory_rows({&catalog::partition_memory_size, &catalog::partition_memory_used, &catalog::partition_memory_free, &catalog::partition_memory_reserved});
constexpr auto kInstanceXidRows = each_place(kInstanceXidNames, [](std::size_t place, std::string_view xid) {
  return Row{&catalog::partition_xid_errors, {"xid", xid}, instance_xid_count(place), 1, Tier::fast, {}, kReported};
});
// clang-format on
constexpr auto kPartitionTable = joined(kInstanceRows, kInstanceMemoryRows, gpm_rows(kPartitionFamilies),
                                        kInstanceEccRows, kInstanceXidRows);

static_assert(valid_table(kTable));
static_assert(valid_table(kPartitionTable));
static_assert(std::all_of(kTable.begin(), kTable.end(), in_its_tier));

// Several hundred rows that few users enable: they are created on demand.
std::vector<Row> rows_with_links() {
  std::vector<Row> rows(kTable.begin(), kTable.end());
  for (const LinkRow make_row : kLinkRows) {
    for (unsigned link = 0; link < nvml::kMostLinks; ++link) rows.push_back(make_row(link, kLinkNames[link]));
  }
  for (const LinkRow make_row : kC2cRows) {
    for (unsigned link = 0; link < nvml::kMostC2cLinks; ++link)
      rows.push_back(make_row(link, kLinkNames[link]));
  }
  return rows;
}

}  // namespace

std::span<const MetricRow<NvidiaContext>> nvidia_rows(bool each_link) {
  if (!each_link) return kTable;
  static const std::vector<Row> with_links = rows_with_links();
  return with_links;
}

std::span<const MetricRow<NvidiaContext>> nvidia_partition_rows() noexcept { return kPartitionTable; }

std::span<const RowDoc> nvidia_row_docs() {
  static const std::vector<RowDoc> docs =
      row_docs<NvidiaContext>({nvidia_rows(true), nvidia_partition_rows()});
  return docs;
}

}  // namespace gpumeter::nvidia
