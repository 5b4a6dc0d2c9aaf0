#pragma once

#include <array>

#include "collectors/amd/readers/blob.hpp"
#include "collectors/api/catalog.hpp"

/// Rows whose only source is gpu_metrics. A row that has a file as an alternative is next to that file's row,
/// in metrics.cpp.
namespace gpumeter::amd {
namespace firmware {

using enum Tier;

inline constexpr Traits kCelsius{.min = -50, .max = 250};
inline constexpr Traits kWatts{.min = 0, .max = 5000};
inline constexpr Traits kHertz{.min = 0, .max = 20e9, .zero_is_unknown = true};
inline constexpr Traits kBandwidth{.min = 1};
inline constexpr Derived kEngineBusy = averaged(catalog::engine_busy_seconds);

// clang-format off
inline constexpr auto kRows = std::to_array<Row>({
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

    {&catalog::clock, {"clock", "soc"}, blob_either("gpu_metrics.current_socclk | gpu_metrics.average_socclk_frequency"), 1, fast, {}, kHertz},
    {&catalog::clock, {"clock", "video"}, blob("gpu_metrics.current_vclk0"), 1, fast, {}, kHertz},
    {&catalog::clock, {"clock", "video"}, blob_either("gpu_metrics.current_vclk | gpu_metrics.average_vclk_frequency"), 1, fast, {}, kHertz},
    {&catalog::clock, {"clock", "fabric"}, blob_either("gpu_metrics.current_fclk | gpu_metrics.average_fclk_frequency"), 1, fast, {}, kHertz},

    // The busiest of the engines: VCN encodes and decodes. Versions 1.0 to 1.3 have one value for all
    // engines.
    {&catalog::engine_utilization, {"engine", "decode"}, blob("gpu_metrics.average_mm_activity"), 1, fast, kEngineBusy, kRatio},
    {&catalog::engine_utilization, {"engine", "decode"}, blob_highest("gpu_metrics.vcn_activity"), 1, fast, kEngineBusy, kRatio},
    {&catalog::engine_utilization, {"engine", "decode"}, blob_highest("gpu_metrics.vcn_busy"), 1, fast, kEngineBusy, kRatio},
    {&catalog::engine_utilization, {"engine", "jpeg"}, blob_highest("gpu_metrics.jpeg_activity"), 1, fast, kEngineBusy, kRatio},
    {&catalog::engine_utilization, {"engine", "jpeg"}, blob_highest("gpu_metrics.jpeg_busy"), 1, fast, kEngineBusy, kRatio},
    {&catalog::memory_bandwidth_utilization, {}, dram_bandwidth(), 1, fast, averaged(catalog::memory_bandwidth_utilization_seconds), kRatio},
    {&catalog::peak_memory_bandwidth, {}, blob("gpu_metrics.mem_max_bandwidth"), 1, slow, {}, kBandwidth},

    // Counters since the driver was loaded.
    {&catalog::interconnect_received_bytes, {"kind", "xgmi"}, blob_counter("gpu_metrics.xgmi_read_data_acc"), 1, normal, {}, kPositive},
    {&catalog::interconnect_transmitted_bytes, {"kind", "xgmi"}, blob_counter("gpu_metrics.xgmi_write_data_acc"), 1, normal, {}, kPositive},
    {&catalog::interconnect_links, {"kind", "xgmi"}, xgmi_links(0b11), 1, slow, {}, kPositive},
    {&catalog::interconnect_links_up, {"kind", "xgmi"}, xgmi_links(0b10), 1, slow, {}, kPositive},

    // Residencies of MI300 and later, which replace the bits; see ThrottleResidency. They precede the rows of
    // the bits, whose integral would be the same series.
    {&catalog::throttle_seconds, {"cause", "power"}, residency("gpu_metrics.ppt_residency_acc"), 1, fast, {}, kPositive},
    {&catalog::throttle_seconds, {"cause", "thermal"}, residency("gpu_metrics.socket_thm_residency_acc | gpu_metrics.vr_thm_residency_acc | gpu_metrics.hbm_thm_residency_acc"), 1, fast, {}, kPositive},
    {&catalog::throttle_seconds, {"cause", "hardware"}, residency("gpu_metrics.prochot_residency_acc"), 1, fast, {}, kPositive},
    {&catalog::throttle_reason_seconds, {"cause", "power", "reason", "ppt"}, residency("gpu_metrics.ppt_residency_acc"), 1, fast, {}, kPositive},
    {&catalog::throttle_reason_seconds, {"cause", "thermal", "reason", "socket_thm"}, residency("gpu_metrics.socket_thm_residency_acc"), 1, fast, {}, kPositive},
    {&catalog::throttle_reason_seconds, {"cause", "thermal", "reason", "vr_thm"}, residency("gpu_metrics.vr_thm_residency_acc"), 1, fast, {}, kPositive},
    {&catalog::throttle_reason_seconds, {"cause", "thermal", "reason", "hbm_thm"}, residency("gpu_metrics.hbm_thm_residency_acc"), 1, fast, {}, kPositive},
    {&catalog::throttle_reason_seconds, {"cause", "hardware", "reason", "prochot"}, residency("gpu_metrics.prochot_residency_acc"), 1, fast, {}, kPositive},
});
// clang-format on

}  // namespace firmware
}  // namespace gpumeter::amd
