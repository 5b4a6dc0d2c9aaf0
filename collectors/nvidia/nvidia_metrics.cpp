#include "collectors/nvidia/nvidia_metrics.hpp"

#include <algorithm>

#include "collectors/nvidia/activity_rows.hpp"
#include "collectors/nvidia/health_rows.hpp"
#include "collectors/nvidia/link_rows.hpp"
#include "collectors/nvidia/partition_rows.hpp"
#include "collectors/nvidia/sensor_rows.hpp"

namespace gpumeter::nvidia {
namespace {

constexpr auto kTable = joined(
    kUtilizationRows, kGpmRows, kCauseTimes, kCauseRows, kReasonTimes, kReasonRows, kMemoryRows, kPowerRows,
    kTemperatureRows, kClockRows, kClockMaxRows, kStateRows, kFanRows, kFanRpmRows, kPersistenceRows,
    kEccModeRows, kEccPendingRows, kMigModeRows, kMigPendingRows, kDisplayRows, kOtherModeRows, kEccRows,
    kMemoryHealthRows, kPcieRows, kInterconnectRows, kLinkRows, kFabricRows, kRecoveryRows, kLicenseRows,
    kXidRows, kXidTimeRows, kEventRows, kPeakTableRows, kPeakFormulaRows, kPeakBandwidthRows);
constexpr auto kPartitionTable = joined(kInstanceRows, gpm_rows(kPartitionFamilies));

static_assert(valid_table(kTable));
static_assert(valid_table(kPartitionTable));
static_assert(std::all_of(kTable.begin(), kTable.end(), in_its_tier));

consteval auto docs_of_both() {
  constexpr auto kGpu = row_docs(kTable);
  constexpr auto kInstance = row_docs(kPartitionTable);
  std::array<RowDoc, kGpu.size() + kInstance.size()> docs{};
  std::copy(kInstance.begin(), kInstance.end(), std::copy(kGpu.begin(), kGpu.end(), docs.begin()));
  return docs;
}
constexpr auto kDocs = docs_of_both();

}  // namespace

std::span<const MetricRow<NvidiaContext>> nvidia_rows() noexcept { return kTable; }

std::span<const MetricRow<NvidiaContext>> nvidia_partition_rows() noexcept { return kPartitionTable; }

std::span<const RowDoc> nvidia_row_docs() { return kDocs; }

}  // namespace gpumeter::nvidia
