#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/amd/card.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/files/context.hpp"
#include "collectors/files/readers.hpp"
#include "collectors/sources/pci.hpp"

/// Every series of an AMD card and of each partition of a divided card: one row each, with fallbacks after
/// their preferred source.
namespace gpumeter::amd {
namespace {

using enum Tier;
using namespace files;

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
    {&catalog::suspended, {}, {asleep, "power/runtime_status"}, 1, fast, {}, kNeverWakes},

    // Counters of MI300 and later precede the rows whose integral would be the same series; see Residency. The
    // driver averages the gauges: over about a second on most chips, over less on some.
    {&catalog::busy_seconds, {}, {residency, "gpu_metrics.gfx_activity_acc"}, 1, fast, {}, kPositive},
    {&catalog::memory_controller_busy_seconds, {}, {residency, "gpu_metrics.mem_activity_acc"}, 1, fast, {}, kPositive},
    {&catalog::utilization, {}, {busy, "gpu_busy_percent"}, kPercent, fast, kBusy.with(kUtilizationExtremes), kRatio},
    {&catalog::utilization, {}, blob("gpu_metrics.average_gfx_activity"), 1, fast, kBusy.with(kUtilizationExtremes), kRatio},
    {&catalog::busy_seconds, {}, {clients_busy, kClientFiles, kBusiestClass}, 1, fast, {}, kOfClients},
    {&catalog::utilization, {}, {clients_share, kClientFiles, kBusiestClass}, 1, fast, {}, kRatioOfClients},
    {&catalog::memory_controller_utilization, {}, {busy, "mem_busy_percent"}, kPercent, fast, kMemoryBusy, kRatio},
    {&catalog::memory_controller_utilization, {}, blob("gpu_metrics.average_umc_activity"), 1, fast, kMemoryBusy, kRatio},

    // Memory. The driver reads these from its own accounting (amdgpu_vram_mgr.c, amdgpu_gtt_mgr.c), so the
    // card does not wake.
    {&catalog::memory_size, {"memory", "vram"}, {constant, "mem_info_vram_total"}, 1, normal, {}, kSize},
    {&catalog::memory_used, {"memory", "vram"}, {file, "mem_info_vram_used"}, 1, normal, {}, kMemory},
    {&catalog::memory_free, {"memory", "vram"}, {difference, "mem_info_vram_total - mem_info_vram_used"}, 1, normal, {}, kMemory},
    {&catalog::memory_size, {"memory", "gtt"}, {constant, "mem_info_gtt_total"}, 1, normal, {}, kSize},
    {&catalog::memory_used, {"memory", "gtt"}, {file, "mem_info_gtt_used"}, 1, normal, {}, kMemory},
    {&catalog::memory_free, {"memory", "gtt"}, {difference, "mem_info_gtt_total - mem_info_gtt_used"}, 1, normal, {}, kMemory},
    {&catalog::visible_memory_size, {}, {constant, "mem_info_vis_vram_total"}, 1, normal, {}, kSize},
    {&catalog::visible_memory_used, {}, {file, "mem_info_vis_vram_used"}, 1, normal, {}, kMemory},

    // Power. power1_average if the chip averages; the values of APUs include their processor cores.
    {&catalog::energy_joules, {}, {blob_energy, "gpu_metrics.energy_accumulator"}, 1, fast, {}, kPositive},
    {&catalog::power, {}, {power, "hwmon/power1_average"}, kMicro, fast, kEnergy.with(kPowerExtremes), kWatts},
    {&catalog::power, {}, {power, "hwmon/power1_input"}, kMicro, fast, instantaneous(catalog::energy_joules).with(kPowerExtremes), kWatts},
    {&catalog::power, {}, blob("gpu_metrics.average_socket_power"), 1, fast, kEnergy.with(kPowerExtremes), kBlobWatts},
    {&catalog::power, {}, blob("gpu_metrics.curr_socket_power"), 1, fast, instantaneous(catalog::energy_joules).with(kPowerExtremes), kBlobWatts},
    {&catalog::power_instant, {}, {power, "hwmon/power1_input"}, kMicro, fast, {}, kWatts},
    {&catalog::power_instant, {}, blob("gpu_metrics.curr_socket_power"), 1, fast, {}, kBlobWatts},
    {&catalog::power_limit, {"limit", "enforced"}, {file, "hwmon/power1_cap"}, kMicro, slow, {}, kWatts},
    {&catalog::power_limit, {"limit", "default"}, {file, "hwmon/power1_cap_default"}, kMicro, slow, {}, kWatts},
    {&catalog::power_limit, {"limit", "min"}, {file, "hwmon/power1_cap_min"}, kMicro, slow, {}, kWatts},
    {&catalog::power_limit, {"limit", "max"}, {file, "hwmon/power1_cap_max"}, kMicro, slow, {}, kWatts},
    {&catalog::voltage, {"rail", "gfx"}, {file, "hwmon/in{vddgfx}_input"}, kMilli, fast, {}, kVolts},
    {&catalog::voltage, {"rail", "gfx"}, blob("gpu_metrics.voltage_gfx"), 1, fast, {}, kVolts},
    {&catalog::voltage, {"rail", "gfx"}, blob("gpu_metrics.average_gfx_voltage"), 1, fast, {}, kVolts},
    {&catalog::voltage, {"rail", "soc"}, {file, "hwmon/in{vddnb}_input"}, kMilli, fast, {}, kVolts}, // amdgpu's name for VDDSOC of APUs
    {&catalog::voltage, {"rail", "soc"}, blob("gpu_metrics.voltage_soc"), 1, fast, {}, kVolts},
    {&catalog::voltage, {"rail", "soc"}, blob("gpu_metrics.average_soc_voltage"), 1, fast, {}, kVolts},
    {&catalog::voltage, {"rail", "memory"}, blob("gpu_metrics.voltage_mem"), 1, fast, {}, kVolts},

    // Temperatures, by label: the available sensors differ by chip.
    {&catalog::temperature, {"sensor", "core"}, {file, "hwmon/temp{edge}_input"}, kMilli, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "core"}, blob("gpu_metrics.temperature_edge"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "core"}, blob("gpu_metrics.temperature_gfx"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "hotspot"}, {file, "hwmon/temp{junction}_input"}, kMilli, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "hotspot"}, blob("gpu_metrics.temperature_hotspot"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "memory"}, {file, "hwmon/temp{mem}_input"}, kMilli, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "memory"}, blob("gpu_metrics.temperature_mem"), 1, fast, {}, kCelsius},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "critical"}, {constant, "hwmon/temp{edge}_crit"}, kMilli, slow, {}, kLimit},
    {&catalog::temperature_limit, {"sensor", "core", "limit", "emergency"}, {constant, "hwmon/temp{edge}_emergency"}, kMilli, slow, {}, kLimit},
    {&catalog::temperature_limit, {"sensor", "hotspot", "limit", "critical"}, {constant, "hwmon/temp{junction}_crit"}, kMilli, slow, {}, kLimit},
    {&catalog::temperature_limit, {"sensor", "hotspot", "limit", "emergency"}, {constant, "hwmon/temp{junction}_emergency"}, kMilli, slow, {}, kLimit},
    {&catalog::temperature_limit, {"sensor", "memory", "limit", "critical"}, {constant, "hwmon/temp{mem}_crit"}, kMilli, slow, {}, kLimit},
    {&catalog::temperature_limit, {"sensor", "memory", "limit", "emergency"}, {constant, "hwmon/temp{mem}_emergency"}, kMilli, slow, {}, kLimit},
    {&catalog::temperature_margin, {"sensor", "core"}, {margin, "hwmon/temp{edge}"}, kMilli, fast},
    {&catalog::temperature_margin, {"sensor", "hotspot"}, {margin, "hwmon/temp{junction}"}, kMilli, fast},
    {&catalog::temperature_margin, {"sensor", "memory"}, {margin, "hwmon/temp{mem}"}, kMilli, fast},
    {&catalog::fan_speed, {"fan", "0"}, {quotient, "hwmon/pwm1 / hwmon/pwm1_max"}, 1, normal, {}, kRatio},
    {&catalog::fan_rpm, {"fan", "0"}, {file, "hwmon/fan1_input"}, 1, normal, {}, kPositive},
    {&catalog::fan_rpm, {"fan", "0"}, blob("gpu_metrics.current_fan_speed"), 1, normal, {}, kPositive},

    {&catalog::clock, {"clock", "graphics"}, {file, "hwmon/freq{sclk}_input"}, 1, fast, {}, kHertz},
    {&catalog::clock, {"clock", "graphics"}, blob_either("gpu_metrics.current_gfxclk | gpu_metrics.average_gfxclk_frequency"), 1, fast, {}, kHertz},
    {&catalog::clock, {"clock", "memory"}, {file, "hwmon/freq{mclk}_input"}, 1, fast, {}, kHertz},
    {&catalog::clock, {"clock", "memory"}, blob_either("gpu_metrics.current_uclk | gpu_metrics.average_uclk_frequency"), 1, fast, {}, kHertz},

    {&catalog::pcie_link_generation, {}, {generation, "slot/current_link_speed"}, 1, slow, {}, kGeneration},
    {&catalog::pcie_link_lanes, {}, {file, "slot/current_link_width"}, 1, slow, {}, kLanes},
    {&catalog::pcie_link_max_generation, {}, {generation, "slot/max_link_speed"}, 1, slow, {}, kGeneration},
    {&catalog::pcie_link_max_lanes, {}, {file, "slot/max_link_width"}, 1, slow, {}, kLanes},
    {&catalog::pcie_replays, {}, {file, "pcie_replay_count"}, 1, slow, {}, kPositive},
    {&catalog::pcie_replays, {}, blob_counter("gpu_metrics.pcie_replay_count_acc"), 1, slow, {}, kPositive},
});
// clang-format on

constexpr std::string_view kThrottleField = "gpu_metrics.indep_throttle_status";
constexpr auto kCauseRows = each(kThrottleCauses, [](std::string_view cause) {
  const Source source = {throttle, kThrottleField, mask_of_cause(cause)};
  return Row{&catalog::throttled, {"cause", cause}, source, 1, fast, state(catalog::throttle_seconds)};
});
constexpr auto kReasonRows = each(kThrottleReasons, [](const ThrottleReason& reason) {
  const LabelSet labels("cause", reason.cause, "reason", reason.reason);
  const Source source = {throttle, kThrottleField, mask_of(reason)};
  return Row{&catalog::throttle_reason_active,       labels, source, 1, fast,
             state(catalog::throttle_reason_seconds)};
});

// Rows whose only source is gpu_metrics. A row that has a file as an alternative is next to that file's row.

constexpr Traits kUnknownHertz{.min = 0, .max = 20e9, .zero_is_unknown = true};
constexpr Traits kBandwidth{.min = 1};
constexpr Derived kEngineBusy = averaged(catalog::engine_busy_seconds);

// clang-format off
constexpr auto kFirmwareRows = std::to_array<Row>({
    {&catalog::temperature, {"sensor", "vrgfx"}, blob("gpu_metrics.temperature_vrgfx"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "vrsoc"}, blob("gpu_metrics.temperature_vrsoc"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "vrmem"}, blob("gpu_metrics.temperature_vrmem"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "soc"}, blob("gpu_metrics.temperature_soc"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "skin"}, blob("gpu_metrics.temperature_skin"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "hbm0"}, blob("gpu_metrics.temperature_hbm[0]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "hbm1"}, blob("gpu_metrics.temperature_hbm[1]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "hbm2"}, blob("gpu_metrics.temperature_hbm[2]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "hbm3"}, blob("gpu_metrics.temperature_hbm[3]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "hbm4"}, blob("gpu_metrics.temperature_hbm[4]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "hbm5"}, blob("gpu_metrics.temperature_hbm[5]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "hbm6"}, blob("gpu_metrics.temperature_hbm[6]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "hbm7"}, blob("gpu_metrics.temperature_hbm[7]"), 1, fast, {}, kCelsius},
    // The dies of MI350: aid for memory and links, xcd for compute.
    {&catalog::temperature, {"sensor", "aid0"}, blob("gpu_metrics.temperature_aid[0]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "aid1"}, blob("gpu_metrics.temperature_aid[1]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "aid2"}, blob("gpu_metrics.temperature_aid[2]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "aid3"}, blob("gpu_metrics.temperature_aid[3]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "xcd0"}, blob("gpu_metrics.temperature_xcd[0]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "xcd1"}, blob("gpu_metrics.temperature_xcd[1]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "xcd2"}, blob("gpu_metrics.temperature_xcd[2]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "xcd3"}, blob("gpu_metrics.temperature_xcd[3]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "xcd4"}, blob("gpu_metrics.temperature_xcd[4]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "xcd5"}, blob("gpu_metrics.temperature_xcd[5]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "xcd6"}, blob("gpu_metrics.temperature_xcd[6]"), 1, fast, {}, kCelsius},
    {&catalog::temperature, {"sensor", "xcd7"}, blob("gpu_metrics.temperature_xcd[7]"), 1, fast, {}, kCelsius},

    // APUs. Their processor cores are not part of the GPU and are omitted.
    {&catalog::power_rail, {"rail", "package"}, blob("gpu_metrics.average_apu_power"), 1, fast, averaged(catalog::rail_energy_joules), kWatts},
    {&catalog::power_rail, {"rail", "gpu"}, blob("gpu_metrics.average_gfx_power"), 1, fast, averaged(catalog::rail_energy_joules), kWatts},
    {&catalog::power_rail, {"rail", "soc"}, blob("gpu_metrics.average_soc_power"), 1, fast, averaged(catalog::rail_energy_joules), kWatts},

    {&catalog::clock, {"clock", "soc"}, blob_either("gpu_metrics.current_socclk | gpu_metrics.average_socclk_frequency"), 1, fast, {}, kUnknownHertz},
    {&catalog::clock, {"clock", "video"}, blob("gpu_metrics.current_vclk0"), 1, fast, {}, kUnknownHertz},
    {&catalog::clock, {"clock", "video"}, blob_either("gpu_metrics.current_vclk | gpu_metrics.average_vclk_frequency"), 1, fast, {}, kUnknownHertz},
    {&catalog::clock, {"clock", "fabric"}, blob_either("gpu_metrics.current_fclk | gpu_metrics.average_fclk_frequency"), 1, fast, {}, kUnknownHertz},

    // The busiest of the engines: VCN encodes and decodes. Versions 1.0 to 1.3 have one value for all
    // engines.
    {&catalog::engine_utilization, {"engine", "decode"}, blob("gpu_metrics.average_mm_activity"), 1, fast, kEngineBusy, kRatio},
    {&catalog::engine_utilization, {"engine", "decode"}, blob_highest("gpu_metrics.vcn_activity"), 1, fast, kEngineBusy, kRatio},
    {&catalog::engine_utilization, {"engine", "decode"}, blob_highest("gpu_metrics.vcn_busy"), 1, fast, kEngineBusy, kRatio},
    {&catalog::engine_utilization, {"engine", "jpeg"}, blob_highest("gpu_metrics.jpeg_activity"), 1, fast, kEngineBusy, kRatio},
    {&catalog::engine_utilization, {"engine", "jpeg"}, blob_highest("gpu_metrics.jpeg_busy"), 1, fast, kEngineBusy, kRatio},
    {&catalog::memory_bandwidth_utilization_seconds, {}, {residency, "gpu_metrics.mem_activity_acc"}, 1, fast, {}, kPositive},
    {&catalog::memory_bandwidth_utilization, {}, {dram_bandwidth, "gpu_metrics.average_umc_activity"}, 1, fast, averaged(catalog::memory_bandwidth_utilization_seconds), kRatio},
    {&catalog::peak_memory_bandwidth, {}, blob("gpu_metrics.mem_max_bandwidth"), 1, slow, {}, kBandwidth},

    // Counters since the driver was loaded.
    {&catalog::interconnect_received_bytes, {"kind", "xgmi"}, blob_counter("gpu_metrics.xgmi_read_data_acc"), 1, normal, {}, kPositive},
    {&catalog::interconnect_transmitted_bytes, {"kind", "xgmi"}, blob_counter("gpu_metrics.xgmi_write_data_acc"), 1, normal, {}, kPositive},
    {&catalog::interconnect_links, {"kind", "xgmi"}, {xgmi_links, "gpu_metrics.xgmi_link_status", 0b11}, 1, slow, {}, kPositive},
    {&catalog::interconnect_links_up, {"kind", "xgmi"}, {xgmi_links, "gpu_metrics.xgmi_link_status", 0b10}, 1, slow, {}, kPositive},

    // Residencies of MI300 and later, which replace the bits. They precede the rows of the bits, whose integral
    // would be the same series.
    {&catalog::throttle_seconds, {"cause", "power"}, {residency, "gpu_metrics.ppt_residency_acc"}, 1, fast, {}, kPositive},
    {&catalog::throttle_seconds, {"cause", "thermal"}, {residency, "gpu_metrics.socket_thm_residency_acc | gpu_metrics.vr_thm_residency_acc | gpu_metrics.hbm_thm_residency_acc"}, 1, fast, {}, kPositive},
    {&catalog::throttle_seconds, {"cause", "hardware"}, {residency, "gpu_metrics.prochot_residency_acc"}, 1, fast, {}, kPositive},
    {&catalog::throttle_reason_seconds, {"cause", "power", "reason", "ppt"}, {residency, "gpu_metrics.ppt_residency_acc"}, 1, fast, {}, kPositive},
    {&catalog::throttle_reason_seconds, {"cause", "thermal", "reason", "socket_thm"}, {residency, "gpu_metrics.socket_thm_residency_acc"}, 1, fast, {}, kPositive},
    {&catalog::throttle_reason_seconds, {"cause", "thermal", "reason", "vr_thm"}, {residency, "gpu_metrics.vr_thm_residency_acc"}, 1, fast, {}, kPositive},
    {&catalog::throttle_reason_seconds, {"cause", "thermal", "reason", "hbm_thm"}, {residency, "gpu_metrics.hbm_thm_residency_acc"}, 1, fast, {}, kPositive},
    {&catalog::throttle_reason_seconds, {"cause", "hardware", "reason", "prochot"}, {residency, "gpu_metrics.prochot_residency_acc"}, 1, fast, {}, kPositive},
});
// clang-format on

// Per compute die, how long its clock was below the limit that the host had set. Version 1.7 has no causes.
struct ClockLoss {
  const MetricDescriptor* family;
  std::string_view cause, field;
};
constexpr ClockLoss kClockLosses[] = {
    {&catalog::clock_below_limit_seconds, "", "gpu_metrics.gfx_below_host_limit_total_acc"},
    {&catalog::clock_below_limit_seconds, "", "gpu_metrics.gfx_below_host_limit_acc"},
    {&catalog::clock_below_limit_cause_seconds, "power", "gpu_metrics.gfx_below_host_limit_ppt_acc"},
    {&catalog::clock_below_limit_cause_seconds, "thermal", "gpu_metrics.gfx_below_host_limit_thm_acc"},
    {&catalog::clock_below_limit_cause_seconds, "low_utilization", "gpu_metrics.gfx_low_utilization_acc"},
};
constexpr std::string_view kDies[] = {"0", "1", "2", "3", "4", "5", "6", "7"};  // kgd_pp_interface.h, MAX_XCC

consteval auto clock_loss_rows() {
  std::array<Row, std::size(kClockLosses) * std::size(kDies)> rows{};
  auto* end = rows.data();
  for (const ClockLoss& loss : kClockLosses) {
    for (std::size_t die = 0; die < std::size(kDies); ++die) {
      const LabelSet labels("xcd", kDies[die], loss.cause.empty() ? "" : "cause", loss.cause);
      *end++ = {loss.family, labels, {residency, loss.field, die}, 1, fast, {}, kPositive};
    }
  }
  return rows;
}

// Error counts of the card's blocks (RAS), since the driver was loaded.

/// Blocks of kernel 6.12 amdgpu_ras.c, ras_block_string and ras_mca_block_string. A card has the blocks that
/// its firmware monitors.
constexpr std::string_view kRasFiles[] = {
    "ras/umc_err_count",     "ras/sdma_err_count",     "ras/gfx_err_count",      "ras/mmhub_err_count",
    "ras/athub_err_count",   "ras/pcie_bif_err_count", "ras/hdp_err_count",      "ras/xgmi_wafl_err_count",
    "ras/df_err_count",      "ras/smn_err_count",      "ras/sem_err_count",      "ras/mp0_err_count",
    "ras/mp1_err_count",     "ras/fuse_err_count",     "ras/mca_err_count",      "ras/mca_mp0_err_count",
    "ras/mca_mp1_err_count", "ras/mca_mpio_err_count", "ras/mca_iohc_err_count", "ras/vcn_err_count",
    "ras/jpeg_err_count",    "ras/ih_err_count",       "ras/mpio_err_count"};

/// "ras/umc_err_count" -> "umc"
constexpr std::string_view block_of(std::string_view ras_file) noexcept {
  constexpr std::string_view kBefore = "ras/";
  constexpr std::string_view kBehind = "_err_count";
  return ras_file.substr(kBefore.size(), ras_file.size() - kBefore.size() - kBehind.size());
}

/// The memory controller counts errors of the attached memory, HBM or GDDR. The other blocks count those of
/// their own SRAM, buses and logic.
constexpr bool is_memory(std::string_view block) noexcept { return block == "umc"; }

constexpr Traits kRasCount{.min = 0};

constexpr Row ras_row(std::string_view file, std::size_t severity) noexcept {
  const std::string_view block = block_of(file);
  const std::string_view name = kRasSeverities[severity].severity;
  const Source count = {ras_count, file, severity};
  if (is_memory(block))
    return {
        &catalog::memory_errors, {"severity", name, "location", block}, count, 1, Tier::slow, {}, kRasCount};
  return {&catalog::hardware_errors, {"block", block, "severity", name}, count, 1, Tier::slow, {}, kRasCount};
}

consteval auto ras_rows() {
  std::array<Row, std::size(kRasFiles) * std::size(kRasSeverities)> rows{};
  auto* end = rows.data();
  for (const std::string_view file : kRasFiles) {
    for (std::size_t i = 0; i < std::size(kRasSeverities); ++i) *end++ = ras_row(file, i);
  }
  return rows;
}

// Lists of clock levels, the video engine, the links, and the active modes.

// clang-format off
constexpr auto kSysfsRows = std::to_array<Row>({
    // VCN decodes and encodes, and no source separates the two. The label is `decode`, since all of its
    // generations decode. The driver's field still has the older decoder's name, average_uvd_activity. Two
    // series of one number would count its time twice.
    {&catalog::engine_utilization, {"engine", "decode"}, {busy, "vcn_busy_percent"}, kPercent, Tier::fast, averaged(catalog::engine_busy_seconds), kRatio},

    // The limits change with overdrive settings. The driver writes 0 if the limit is unknown.
    {&catalog::clock_max, {"clock", "graphics"}, {clock_limit, "pp_dpm_sclk"}, kMega, Tier::slow, {}, kUnknownHertz},
    {&catalog::clock_max, {"clock", "memory"}, {clock_limit, "pp_dpm_mclk"}, kMega, Tier::slow, {}, kUnknownHertz},
    {&catalog::clock_max, {"clock", "soc"}, {clock_limit, "pp_dpm_socclk"}, kMega, Tier::slow, {}, kUnknownHertz},
    {&catalog::clock_max, {"clock", "fabric"}, {clock_limit, "pp_dpm_fclk"}, kMega, Tier::slow, {}, kUnknownHertz},
    {&catalog::clock_max, {"clock", "video"}, {clock_limit, "pp_dpm_vclk"}, kMega, Tier::slow, {}, kUnknownHertz},

    // Used if neither hwmon nor gpu_metrics has the clocks: each of these files costs a separate call to the
    // firmware.
    {&catalog::clock, {"clock", "graphics"}, {clock_level, "pp_dpm_sclk"}, kMega, Tier::fast, {}, kUnknownHertz},
    {&catalog::clock, {"clock", "memory"}, {clock_level, "pp_dpm_mclk"}, kMega, Tier::fast, {}, kUnknownHertz},
    {&catalog::clock, {"clock", "soc"}, {clock_level, "pp_dpm_socclk"}, kMega, Tier::normal, {}, kUnknownHertz},
    {&catalog::clock, {"clock", "fabric"}, {clock_level, "pp_dpm_fclk"}, kMega, Tier::normal, {}, kUnknownHertz},
    {&catalog::clock, {"clock", "video"}, {clock_level, "pp_dpm_vclk"}, kMega, Tier::normal, {}, kUnknownHertz},

    // xgmi_error is not read. A read resets it, so that other readers lose the count. While the counting is
    // off, each read also logs a kernel error (kernel 6.12, amdgpu_xgmi_show_error).
    {&catalog::interconnect_links, {"kind", "xgmi"}, {links, "xgmi_num_links"}, 1, Tier::slow},
    {&catalog::retired_pages, {"cause", "uncorrected"}, {bad_pages, "ras/gpu_vram_bad_pages"}, 1, Tier::slow},
});

// The card's partition modes, and the performance level that was set.
constexpr auto kModeRows = each_place(kModes, [](std::size_t index, const Mode& of) {
  return Row{&catalog::mode, {"mode", of.mode, "state", of.state}, {mode, of.file, index}, 1, Tier::slow, {}, of.wakes ? kUsual : kNeverWakes};
});
// clang-format on

/// A link that the firmware may have: up to eight (kgd_pp_interface.h, NUM_XGMI_LINKS). MI300 and later.
struct XgmiLink {
  std::string_view label;
  Source received, transmitted, status;
};
// clang-format off
constexpr XgmiLink kXgmiLinks[] = {
    {"0", link_counter("gpu_metrics.xgmi_read_data_acc[0]"), link_counter("gpu_metrics.xgmi_write_data_acc[0]"), link_status("gpu_metrics.xgmi_link_status[0]")},
    {"1", link_counter("gpu_metrics.xgmi_read_data_acc[1]"), link_counter("gpu_metrics.xgmi_write_data_acc[1]"), link_status("gpu_metrics.xgmi_link_status[1]")},
    {"2", link_counter("gpu_metrics.xgmi_read_data_acc[2]"), link_counter("gpu_metrics.xgmi_write_data_acc[2]"), link_status("gpu_metrics.xgmi_link_status[2]")},
    {"3", link_counter("gpu_metrics.xgmi_read_data_acc[3]"), link_counter("gpu_metrics.xgmi_write_data_acc[3]"), link_status("gpu_metrics.xgmi_link_status[3]")},
    {"4", link_counter("gpu_metrics.xgmi_read_data_acc[4]"), link_counter("gpu_metrics.xgmi_write_data_acc[4]"), link_status("gpu_metrics.xgmi_link_status[4]")},
    {"5", link_counter("gpu_metrics.xgmi_read_data_acc[5]"), link_counter("gpu_metrics.xgmi_write_data_acc[5]"), link_status("gpu_metrics.xgmi_link_status[5]")},
    {"6", link_counter("gpu_metrics.xgmi_read_data_acc[6]"), link_counter("gpu_metrics.xgmi_write_data_acc[6]"), link_status("gpu_metrics.xgmi_link_status[6]")},
    {"7", link_counter("gpu_metrics.xgmi_read_data_acc[7]"), link_counter("gpu_metrics.xgmi_write_data_acc[7]"), link_status("gpu_metrics.xgmi_link_status[7]")},
};
// clang-format on

constexpr auto kLinkReceivedRows = each(kXgmiLinks, [](const XgmiLink& link) {
  const LabelSet labels("kind", "xgmi", "link", link.label);
  return Row{&catalog::link_received_bytes, labels, link.received, 1, Tier::normal, {}, kPositive};
});
constexpr auto kLinkTransmittedRows = each(kXgmiLinks, [](const XgmiLink& link) {
  const LabelSet labels("kind", "xgmi", "link", link.label);
  return Row{&catalog::link_transmitted_bytes, labels, link.transmitted, 1, Tier::normal, {}, kPositive};
});
constexpr auto kLinkUpRows = each(kXgmiLinks, [](const XgmiLink& link) {
  return Row{&catalog::link_up, {"kind", "xgmi", "link", link.label}, link.status, 1, Tier::slow};
});

// Counters since the driver was loaded, of MI300 and later.
// clang-format off
constexpr auto kPcieEventRows = std::to_array<Row>({
    {&catalog::pcie_link_events, {"event", "l0_to_recovery"}, blob_counter("gpu_metrics.pcie_l0_to_recov_count_acc"), 1, Tier::slow, {}, kPositive},
    {&catalog::pcie_link_events, {"event", "nak_received"}, blob_counter("gpu_metrics.pcie_nak_rcvd_count_acc"), 1, Tier::slow, {}, kPositive},
    {&catalog::pcie_link_events, {"event", "nak_sent"}, blob_counter("gpu_metrics.pcie_nak_sent_count_acc"), 1, Tier::slow, {}, kPositive},
});
// clang-format on

// The counts are in memory, so reading them does not wake the card.
constexpr Traits kReported{.min = 0, .wakes = false, .forgets = true};
constexpr auto kEventRows = each_place(kEvents, [](std::size_t place, const EventKind& event) {
  return Row{&catalog::events,
             {"event", event.name},
             {event_count, "AMDKFD_IOC_SMI_EVENTS", place},
             1,
             Tier::fast,
             {},
             kReported};
});

// The card's peak rates, and the rows of each partition of a divided card. Sensors exist only for the whole
// card.

// clang-format off
constexpr auto kKfdRows = std::to_array<Row>({
    {&catalog::peak_flops, {"dtype", "fp32", "source", "formula"}, {peak, "kfd/topology", Peak::fp32}, 1, Tier::once, {}, kNeverWakes},
    {&catalog::peak_flops, {"dtype", "fp16", "source", "formula"}, {peak, "kfd/topology", Peak::fp16}, 1, Tier::once, {}, kNeverWakes},
    {&catalog::peak_flops, {"dtype", "bf16", "source", "formula"}, {peak, "kfd/topology", Peak::bf16}, 1, Tier::once, {}, kNeverWakes},
    {&catalog::peak_memory_bandwidth, {}, {peak, "kfd/topology", Peak::memory}, 1, Tier::once, {}, kNeverWakes},
});

// Memory bandwidth is omitted: for each partition the topology has the width of the whole card.
constexpr auto kPartitionRows = std::to_array<Row>({
    {&catalog::partition_busy_seconds, {}, {part_busy, "gpu_metrics.gfx_busy_acc"}, 1, Tier::fast, {}, kPositive},
    {&catalog::partition_utilization, {}, part_highest("gpu_metrics.gfx_busy_inst"), 1, Tier::fast, instantaneous(catalog::partition_busy_seconds), kRatio},
    {&catalog::partition_engine_utilization, {"engine", "decode"}, part_highest("gpu_metrics.vcn_busy"), 1, Tier::fast, averaged(catalog::partition_engine_busy_seconds), kRatio},
    {&catalog::partition_engine_utilization, {"engine", "jpeg"}, part_highest("gpu_metrics.jpeg_busy"), 1, Tier::fast, averaged(catalog::partition_engine_busy_seconds), kRatio},
    {&catalog::partition_memory_size, {"memory", "vram"}, {part_memory, "kfd/topology mem_banks/0 size_in_bytes"}, 1, Tier::once, {}, kNeverWakes},
    {&catalog::partition_peak_flops, {"dtype", "fp32", "source", "formula"}, {part_peak, "kfd/topology", Peak::fp32}, 1, Tier::once, {}, kNeverWakes},
    {&catalog::partition_peak_flops, {"dtype", "fp16", "source", "formula"}, {part_peak, "kfd/topology", Peak::fp16}, 1, Tier::once, {}, kNeverWakes},
    {&catalog::partition_peak_flops, {"dtype", "bf16", "source", "formula"}, {part_peak, "kfd/topology", Peak::bf16}, 1, Tier::once, {}, kNeverWakes},
});
// clang-format on

// Fallbacks follow the rows that they replace.
constexpr auto kTable = joined(kRows, kFirmwareRows, clock_loss_rows(), kCauseRows, kReasonRows, ras_rows(),
                               aer_rows(), kSysfsRows, kKfdRows, kModeRows, kPcieEventRows, kEventRows,
                               kLinkReceivedRows, kLinkTransmittedRows, kLinkUpRows);
static_assert(valid_table(kTable));
static_assert(valid_table(kPartitionRows));

// The positions of amdgpu's sensors (kernel 6.12, amdgpu_pm.c). The older radeon driver has the same order
// but no labels.
constexpr UnlabelledSensor kUnlabelled[] = {{"temp", "edge", 1}, {"temp", "junction", 2}, {"temp", "mem", 3},
                                            {"freq", "sclk", 1}, {"freq", "mclk", 2},     {"in", "vddgfx", 0},
                                            {"in", "vddnb", 1}};
constexpr HwmonChip kHwmon[] = {{"amdgpu", kUnlabelled}, {"radeon", kUnlabelled}};

/// nullopt: the GPU is integrated and has no link. A sleeping card does not show whether it is integrated.
std::optional<std::string> slot_of(const pci::Function& function, bool is_awake) {
  std::string port = pci::upstream_port(function);
  if (is_awake && pci::has_placeholder_link(port)) return std::nullopt;
  return port;
}
constexpr PathRules kPaths = {kHwmon, slot_of};

}  // namespace

std::unique_ptr<Device> amd_device(const Roots& roots, const AmdOptions& options, std::string_view driver) {
  const Kind kind = {.rows = kTable,
                     .slice_rows = kPartitionRows,
                     .sleep = Sleep::allowed,
                     .scans = driver == "amdgpu" ? Scans::always : Scans::never,  // radeon prints none
                     .paths = kPaths};
  return make_device(kind, roots, std::make_unique<AmdCard>(roots.sysfs, options));
}

std::string path_of(const std::string& card_folder, std::string_view name) {
  const std::string unresolved = card_folder + "/" + std::string(name);
  return Paths("", card_folder, kPaths).resolve(name).value_or(unresolved);
}

std::span<const RowDoc> amd_row_docs() {
  static const std::vector<RowDoc> docs = row_docs<Context>({kTable, kPartitionRows});
  return docs;
}

}  // namespace gpumeter::amd
