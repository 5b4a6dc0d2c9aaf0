#include "collectors/intel/metrics.hpp"

#include <array>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/intel/readers/basic.hpp"
#include "collectors/intel/rows/engines.hpp"
#include "collectors/intel/rows/errors.hpp"
#include "collectors/intel/rows/sensors.hpp"
#include "collectors/intel/throttle.hpp"
#include "collectors/table/row.hpp"

namespace gpumeter::intel {
namespace {

using enum Tier;

// No card exceeds these ranges, so a reading outside must be wrong.
constexpr Traits kWatts{.min = 0, .max = 5000};
constexpr Traits kMeanWatts{.min = 0, .max = 5000, .forgets = true};          // needs two readings
constexpr Traits kWattLimit{.min = 0, .max = 5000, .zero_is_unknown = true};  // 0: the limit is off
constexpr Traits kVolts{.min = 0, .max = 20};                                 // 0: the rail is gated
constexpr Traits kHertz{.min = 0, .max = 20e9};                               // 0: the clock is gated
constexpr Traits kGeneration{.min = 1, .max = 7};
constexpr Traits kLanes{.min = 1, .max = 32};
constexpr Traits kSize{.min = 1};

// clang-format off
constexpr auto kRows = std::to_array<Row>({
    {&catalog::suspended, {}, asleep("power/runtime_status"), 1, fast, {}, kNeverWakes},

    // Each query opens the card's node and closes it.
    {&catalog::memory_size, {"memory", "vram"}, memory_region(MemoryPart::size), 1, normal, {}, kSize},
    {&catalog::memory_used, {"memory", "vram"}, memory_region(MemoryPart::used), 1, normal, {}, kPositive},
    {&catalog::memory_free, {"memory", "vram"}, memory_region(MemoryPart::free), 1, normal, {}, kPositive},
    {&catalog::visible_memory_size, {}, memory_region(MemoryPart::visible_size), 1, normal, {}, kSize},
    {&catalog::visible_memory_used, {}, memory_region(MemoryPart::visible_used), 1, normal, {}, kPositive},

    // The card's energy if the firmware counts it, otherwise that of the package. The hardware counts in 32 bits,
    // which wrap after 4 minutes at 1000 W; the drivers extend the count only when it is read (kernel 7.2,
    // xe_hwmon_energy_get), so it is read in every fast pass.
    {&catalog::energy_joules, {}, nonzero("hwmon/energy{card}_input"), kMicro, fast, {}, kPositive},
    {&catalog::energy_joules, {}, nonzero("hwmon/energy{pkg}_input"), kMicro, fast, {}, kPositive},
    {&catalog::rail_energy_joules, {"rail", "card"}, nonzero("hwmon/energy{=card}_input"), kMicro, fast, {}, kPositive},
    {&catalog::rail_energy_joules, {"rail", "package"}, nonzero("hwmon/energy{=pkg}_input"), kMicro, fast, {}, kPositive},
    {&catalog::power, {}, file("hwmon/power{card}_input"), kMicro, fast, Derived{}.with(kPowerExtremes), kWatts},
    {&catalog::power, {}, mean_power("hwmon/energy{card}_input"), kMicro, fast, Derived{}.with(kPowerExtremes), kMeanWatts},
    {&catalog::power, {}, mean_power("hwmon/energy{pkg}_input"), kMicro, fast, Derived{}.with(kPowerExtremes), kMeanWatts},
    {&catalog::power_rail, {"rail", "card"}, mean_power("hwmon/energy{=card}_input"), kMicro, fast, {}, kMeanWatts},
    {&catalog::power_rail, {"rail", "package"}, mean_power("hwmon/energy{=pkg}_input"), kMicro, fast, {}, kMeanWatts},

    // PL1 (_max) limits the mean over some seconds, PL2 (_cap) over some milliseconds; I1 (_crit) is the highest
    // that the card ever draws.
    {&catalog::power_limit, {"limit", "enforced"}, nonzero("hwmon/power{card}_max"), kMicro, slow, {}, kWattLimit},
    {&catalog::power_limit, {"limit", "enforced"}, nonzero("hwmon/power{pkg}_max"), kMicro, slow, {}, kWattLimit},
    {&catalog::power_limit, {"limit", "enforced"}, nonzero("hwmon/power{card}_cap"), kMicro, slow, {}, kWattLimit},
    {&catalog::power_limit, {"limit", "enforced"}, nonzero("hwmon/power{pkg}_cap"), kMicro, slow, {}, kWattLimit},
    {&catalog::power_limit, {"limit", "default"}, nonzero("hwmon/power{card}_rated_max"), kMicro, slow, {}, kWattLimit},
    {&catalog::power_limit, {"limit", "default"}, nonzero("hwmon/power{pkg}_rated_max"), kMicro, slow, {}, kWattLimit},
    {&catalog::power_limit, {"limit", "max"}, nonzero("hwmon/power{card}_crit"), kMicro, slow, {}, kWattLimit},
    {&catalog::power_limit, {"limit", "max"}, nonzero("hwmon/power{pkg}_crit"), kMicro, slow, {}, kWattLimit},
    {&catalog::voltage, {"rail", "gfx"}, file("hwmon/in{pkg}_input"), kMilli, fast, {}, kVolts},

    {&catalog::clock, {"clock", "graphics"}, clock(GtKind::graphics), kMega, fast, {}, kHertz},
    {&catalog::clock, {"clock", "video"}, clock(GtKind::media), kMega, fast, {}, kHertz},
    {&catalog::clock_max, {"clock", "graphics"}, clock_limit(GtKind::graphics), kMega, slow, {}, kHertz},
    {&catalog::clock_max, {"clock", "video"}, clock_limit(GtKind::media), kMega, slow, {}, kHertz},

    {&catalog::pcie_link_generation, {}, generation("link/current_link_speed"), 1, slow, {}, kGeneration},
    {&catalog::pcie_link_lanes, {}, file("link/current_link_width"), 1, slow, {}, kLanes},
    {&catalog::pcie_link_max_generation, {}, generation("link/max_link_speed"), 1, slow, {}, kGeneration},
    {&catalog::pcie_link_max_lanes, {}, file("link/max_link_width"), 1, slow, {}, kLanes},
});
// clang-format on

// The most GTs of any chip: two on each of four tiles.
constexpr std::string_view kGts[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
constexpr auto kIdleRows = each_place(kGts, [](std::size_t gt, std::string_view label) {
  return Row{&catalog::gt_idle_seconds, {"gt", label}, idle(gt), kMilli, normal, {}, kPositive};
});

constexpr auto kCauseRows = each(kThrottleCauses, [](std::string_view cause) {
  const IntelSource source = throttle(mask_of_cause(cause));
  return Row{&catalog::throttled, {"cause", cause}, source, 1, fast, state(catalog::throttle_seconds)};
});
constexpr auto kReasonRows =
    each_place(kThrottleReasons, [](std::size_t place, const ThrottleReason& reason) {
      const LabelSet labels("cause", reason.cause, "reason", reason.reason);
      const IntelSource source = throttle(ThrottleMask{1} << place);
      return Row{&catalog::throttle_reason_active,       labels, source, 1, fast,
                 state(catalog::throttle_reason_seconds)};
    });

constexpr auto kTable =
    joined(kRows, kEngineRows, kTemperatureRows, kFanRows, kCauseRows, kReasonRows, kIdleRows, kErrorRows);
static_assert(valid_table(kTable));

}  // namespace

std::span<const MetricRow<IntelContext>> intel_rows() noexcept { return kTable; }

std::span<const RowDoc> intel_row_docs() {
  static const std::vector<RowDoc> docs = row_docs<IntelContext>({intel_rows()});
  return docs;
}

}  // namespace gpumeter::intel
