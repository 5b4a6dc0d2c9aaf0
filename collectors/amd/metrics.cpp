#include "collectors/amd/metrics.hpp"

#include <array>
#include <vector>

#include "collectors/amd/chip.hpp"
#include "collectors/amd/readers/basic.hpp"
#include "collectors/amd/readers/blob.hpp"
#include "collectors/amd/rows/errors.hpp"
#include "collectors/amd/rows/firmware.hpp"
#include "collectors/amd/rows/links.hpp"
#include "collectors/amd/rows/partitions.hpp"
#include "collectors/amd/rows/sysfs.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/table/row.hpp"

namespace gpumeter::amd {
namespace {

using enum Tier;

// No card exceeds these ranges, so a reading outside must be wrong. The lowest hwmon value, -273150 m°C,
// means "not set".
constexpr Traits kCelsius{.min = -50, .max = 250};
constexpr Traits kLimit{.min = 1, .max = 250, .zero_is_unknown = true};
constexpr Traits kWatts{.min = 0, .max = 5000};
constexpr Traits kBlobWatts{.min = 0, .max = 5000, .zero_is_unknown = true};  // 0: a second die, a guest
constexpr Traits kVolts{.min = 0, .max = 20};                                 // 0: the rail is gated
constexpr Traits kHertz{.min = 0, .max = 20e9};                               // 0: the clock is gated
constexpr Traits kGeneration{.min = 1, .max = 6};
constexpr Traits kLanes{.min = 1, .max = 32};
constexpr Traits kMemory{.min = 0, .wakes = false};
constexpr Traits kSize{.min = 1, .wakes = false};

// The scan of the clients has its own thread; before their first scan there is no value.
constexpr Traits kOfClients{.min = 0, .wakes = false, .forgets = true, .counted_by = "fdinfo"};
constexpr Traits kRatioOfClients{.min = 0, .max = 1, .wakes = false, .forgets = true};

constexpr Derived kEnergy = averaged(catalog::energy_joules);
constexpr Derived kBusy = averaged(catalog::busy_seconds);
constexpr Derived kMemoryBusy = averaged(catalog::memory_controller_busy_seconds);

// clang-format off
constexpr auto kRows = std::to_array<Row>({
    {&catalog::suspended, {}, asleep("power/runtime_status"), 1, fast, {}, kNeverWakes},

    // The driver averages all of these: over about a second on most chips, over less on some.
    {&catalog::utilization, {}, busy("gpu_busy_percent"), kPercent, fast, kBusy.with(kUtilizationExtremes), kRatio},
    {&catalog::utilization, {}, blob("gpu_metrics.average_gfx_activity"), 1, fast, kBusy.with(kUtilizationExtremes), kRatio},
    {&catalog::busy_seconds, {}, clients_busy("fdinfo.drm-engine-*"), 1, fast, {}, kOfClients},
    {&catalog::utilization, {}, clients_utilization("fdinfo.drm-engine-*"), 1, fast, {}, kRatioOfClients},
    {&catalog::memory_controller_utilization, {}, busy("mem_busy_percent"), kPercent, fast, kMemoryBusy, kRatio},
    {&catalog::memory_controller_utilization, {}, blob("gpu_metrics.average_umc_activity"), 1, fast, kMemoryBusy, kRatio},

    // Memory. The driver reads these from its own accounting (amdgpu_vram_mgr.c, amdgpu_gtt_mgr.c), so the
    // card does not wake.
    {&catalog::memory_size, {"memory", "vram"}, constant("mem_info_vram_total"), 1, normal, {}, kSize},
    {&catalog::memory_used, {"memory", "vram"}, file("mem_info_vram_used"), 1, normal, {}, kMemory},
    {&catalog::memory_free, {"memory", "vram"}, difference("mem_info_vram_total - mem_info_vram_used"), 1, normal, {}, kMemory},
    {&catalog::memory_size, {"memory", "gtt"}, constant("mem_info_gtt_total"), 1, normal, {}, kSize},
    {&catalog::memory_used, {"memory", "gtt"}, file("mem_info_gtt_used"), 1, normal, {}, kMemory},
    {&catalog::memory_free, {"memory", "gtt"}, difference("mem_info_gtt_total - mem_info_gtt_used"), 1, normal, {}, kMemory},
    {&catalog::visible_memory_size, {}, constant("mem_info_vis_vram_total"), 1, normal, {}, kSize},
    {&catalog::visible_memory_used, {}, file("mem_info_vis_vram_used"), 1, normal, {}, kMemory},

    // Power. power1_average if the chip averages; the values of APUs include their processor cores.
    {&catalog::energy_joules, {}, blob_energy(), 1, fast, {}, kPositive},
    {&catalog::power, {}, power("hwmon/power1_average"), kMicro, fast, kEnergy.with(kPowerExtremes), kWatts},
    {&catalog::power, {}, power("hwmon/power1_input"), kMicro, fast, instantaneous(catalog::energy_joules).with(kPowerExtremes), kWatts},
    {&catalog::power, {}, blob("gpu_metrics.average_socket_power"), 1, fast, kEnergy.with(kPowerExtremes), kBlobWatts},
    {&catalog::power, {}, blob("gpu_metrics.curr_socket_power"), 1, fast, instantaneous(catalog::energy_joules).with(kPowerExtremes), kBlobWatts},
    {&catalog::power_instant, {}, power("hwmon/power1_input"), kMicro, fast, {}, kWatts},
    {&catalog::power_instant, {}, blob("gpu_metrics.curr_socket_power"), 1, fast, {}, kBlobWatts},
    {&catalog::power_limit, {"limit", "enforced"}, file("hwmon/power1_cap"), kMicro, slow, {}, kWatts},
    {&catalog::power_limit, {"limit", "default"}, file("hwmon/power1_cap_default"), kMicro, slow, {}, kWatts},
    {&catalog::power_limit, {"limit", "min"}, file("hwmon/power1_cap_min"), kMicro, slow, {}, kWatts},
    {&catalog::power_limit, {"limit", "max"}, file("hwmon/power1_cap_max"), kMicro, slow, {}, kWatts},
    {&catalog::voltage, {"rail", "gfx"}, file("hwmon/in{vddgfx}_input"), kMilli, fast, {}, kVolts},
    {&catalog::voltage, {"rail", "gfx"}, blob("gpu_metrics.voltage_gfx"), 1, fast, {}, kVolts},
    {&catalog::voltage, {"rail", "gfx"}, blob("gpu_metrics.average_gfx_voltage"), 1, fast, {}, kVolts},
    {&catalog::voltage, {"rail", "soc"}, file("hwmon/in{vddnb}_input"), kMilli, fast, {}, kVolts}, // amdgpu's name for VDDSOC of APUs
    {&catalog::voltage, {"rail", "soc"}, blob("gpu_metrics.voltage_soc"), 1, fast, {}, kVolts},
    {&catalog::voltage, {"rail", "soc"}, blob("gpu_metrics.average_soc_voltage"), 1, fast, {}, kVolts},
    {&catalog::voltage, {"rail", "memory"}, blob("gpu_metrics.voltage_mem"), 1, fast, {}, kVolts},

    // Temperatures, by label: the available sensors differ by chip.
    {&catalog::temperature, {"sensor", "core"}, file("hwmon/temp{edge}_input"), kMilli, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "core"}, blob("gpu_metrics.temperature_edge"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "core"}, blob("gpu_metrics.temperature_gfx"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "hotspot"}, file("hwmon/temp{junction}_input"), kMilli, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "hotspot"}, blob("gpu_metrics.temperature_hotspot"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "memory"}, file("hwmon/temp{mem}_input"), kMilli, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "memory"}, blob("gpu_metrics.temperature_mem"), 1, fast, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "critical"}, constant("hwmon/temp{edge}_crit"), kMilli, slow, {}, kLimit},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "emergency"}, constant("hwmon/temp{edge}_emergency"), kMilli, slow, {}, kLimit},
    {&catalog::temperature_limit, {"sensor", "hotspot", "limit", "critical"}, constant("hwmon/temp{junction}_crit"), kMilli, slow, {}, kLimit},
    {&catalog::temperature_limit, {"sensor", "hotspot", "limit", "emergency"}, constant("hwmon/temp{junction}_emergency"), kMilli, slow, {}, kLimit},
    {&catalog::temperature_limit, {"sensor", "memory", "limit", "critical"}, constant("hwmon/temp{mem}_crit"), kMilli, slow, {}, kLimit},
    {&catalog::temperature_limit, {"sensor", "memory", "limit", "emergency"}, constant("hwmon/temp{mem}_emergency"), kMilli, slow, {}, kLimit},
    {&catalog::temperature_margin, {"sensor", "core"}, margin("hwmon/temp{edge}"), kMilli, fast},
    {&catalog::temperature_margin, {"sensor", "hotspot"}, margin("hwmon/temp{junction}"), kMilli, fast},
    {&catalog::temperature_margin, {"sensor", "memory"}, margin("hwmon/temp{mem}"), kMilli, fast},
    {&catalog::fan_speed, {"fan", "0"}, quotient("hwmon/pwm1 / hwmon/pwm1_max"), 1, normal, {}, kRatio},
    {&catalog::fan_rpm, {"fan", "0"}, file("hwmon/fan1_input"), 1, normal, {}, kPositive},
    {&catalog::fan_rpm, {"fan", "0"}, blob("gpu_metrics.current_fan_speed"), 1, normal, {}, kPositive},

    {&catalog::clock, {"clock", "graphics"}, file("hwmon/freq{sclk}_input"), 1, fast, {}, kHertz},
    {&catalog::clock, {"clock", "graphics"}, blob_either("gpu_metrics.current_gfxclk | gpu_metrics.average_gfxclk_frequency"), 1, fast, {}, kHertz},
    {&catalog::clock, {"clock", "memory"}, file("hwmon/freq{mclk}_input"), 1, fast, {}, kHertz},
    {&catalog::clock, {"clock", "memory"}, blob_either("gpu_metrics.current_uclk | gpu_metrics.average_uclk_frequency"), 1, fast, {}, kHertz},

    {&catalog::pcie_link_generation, {}, link_generation("upstream/current_link_speed"), 1, slow, {}, kGeneration},
    {&catalog::pcie_link_lanes, {}, link_lanes("upstream/current_link_width"), 1, slow, {}, kLanes},
    {&catalog::pcie_link_max_generation, {}, link_generation("upstream/max_link_speed"), 1, slow, {}, kGeneration},
    {&catalog::pcie_link_max_lanes, {}, link_lanes("upstream/max_link_width"), 1, slow, {}, kLanes},
    {&catalog::pcie_replays, {}, file("pcie_replay_count"), 1, slow, {}, kPositive},
    {&catalog::pcie_replays, {}, blob_counter("gpu_metrics.pcie_replay_count_acc"), 1, slow, {}, kPositive},
});
// clang-format on

constexpr auto kCauseRows = each(kThrottleCauses, [](std::string_view cause) {
  const AmdSource source = throttle(mask_of_cause(cause));
  return Row{&catalog::throttled, {"cause", cause}, source, 1, fast, state(catalog::throttle_seconds)};
});
constexpr auto kReasonRows = each(kThrottleReasons, [](const ThrottleReason& reason) {
  const LabelSet labels("cause", reason.cause, "reason", reason.reason);
  const AmdSource source = throttle(mask_of(reason));
  return Row{&catalog::throttle_reason_active,       labels, source, 1, fast,
             state(catalog::throttle_reason_seconds)};
});

// Fallbacks follow the rows that they replace.
constexpr auto kTable =
    joined(kRows, firmware::kRows, kCauseRows, kReasonRows, error_rows(), kSysfsRows, kKfdRows, kModeRows,
           kPcieEventRows, kEventRows, kLinkReceivedRows, kLinkTransmittedRows, kLinkUpRows);
static_assert(valid_table(kTable));
static_assert(valid_table(kPartitionRows));

}  // namespace

std::span<const MetricRow<AmdContext>> amd_rows() noexcept { return kTable; }

std::span<const MetricRow<AmdContext>> amd_partition_rows() noexcept { return kPartitionRows; }

std::span<const RowDoc> amd_row_docs() {
  static const std::vector<RowDoc> docs = row_docs<AmdContext>({amd_rows(), amd_partition_rows()});
  return docs;
}

}  // namespace gpumeter::amd
