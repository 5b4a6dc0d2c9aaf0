#include "collectors/simulated/metrics.hpp"

#include <vector>

#include "collectors/simulated/activity_rows.hpp"
#include "collectors/simulated/health_rows.hpp"

namespace gpumeter::simulated {
namespace {

constexpr auto kActivity =
    joined(kUtilizationRows, kEngineRows, kPipeRows, kTensorRows, kMemoryRows, kPowerRows, kRailRows,
           kTemperatureRows, kMarginRows, kSlowdownRows, kShutdownRows, kClockRows, kPeakRows, kTrafficRows);
constexpr auto kHealth =
    joined(kModeRows, kCauseRows, kReasonRows, kErrorRows, kLifetimeErrorRows, kHardwareErrorRows, kXidRows,
           kXidTimeRows, kHealthRows, kRecoveryRows, kFabricRows, kLicenseRows, kEccModeRows);
static_assert(valid_table(kActivity));
static_assert(valid_table(kHealth));

constexpr auto kAll = joined(kActivity, kHealth);

}  // namespace

std::span<const Row> simulated_rows() noexcept { return kAll; }

std::span<const RowDoc> simulated_row_docs() {
  static const std::vector<RowDoc> docs = row_docs<SimulatedContext>({simulated_rows()});
  return docs;
}

}  // namespace gpumeter::simulated
