#pragma once

#include "collectors/nvidia/readers/links.hpp"
#include "collectors/nvidia/rows/sensors.hpp"

/// Rows of NVLink and the fabric.
namespace gpumeter::nvidia {

// clang-format off
// Fields 138 and 139 are sums of KiB over all links (scope: all ones). Errors of all links are separate
// fields. From NVLink 5 on they are fields of each link, and not every driver has a sum.
inline constexpr auto kInterconnectRows = std::to_array<Row>({
    {&catalog::interconnect_transmitted_bytes, {"kind", "nvlink"}, field("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", 138, Tier::fast, nvml::kAllLinks), kKibi, Tier::fast, {}, kPositive},
    {&catalog::interconnect_received_bytes, {"kind", "nvlink"}, field("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", 139, Tier::fast, nvml::kAllLinks), kKibi, Tier::fast, {}, kPositive},
    {&catalog::interconnect_transmitted_bytes, {"kind", "nvlink"}, field("NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES", 202, Tier::fast, nvml::kAllLinks), 1, Tier::fast, {}, kPositive},
    {&catalog::interconnect_received_bytes, {"kind", "nvlink"}, field("NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES", 204, Tier::fast, nvml::kAllLinks), 1, Tier::fast, {}, kPositive},
    {&catalog::interconnect_transmitted_bytes, {"kind", "nvlink"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES", 202, Tier::normal), 1, Tier::normal, {}, kPositive},
    {&catalog::interconnect_received_bytes, {"kind", "nvlink"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES", 204, Tier::normal), 1, Tier::normal, {}, kPositive},
    {&catalog::interconnect_transmitted_bytes, {"kind", "nvlink"}, gpm_link_total("GPM NVLink TX MiB/s", 61, 91), kMebi, Tier::fast, {}, kIntegrated},
    {&catalog::interconnect_received_bytes, {"kind", "nvlink"}, gpm_link_total("GPM NVLink RX MiB/s", 60, 91), kMebi, Tier::fast, {}, kIntegrated},
    {&catalog::interconnect_transmitted_bytes, {"kind", "c2c"}, gpm_link_total("GPM C2C data TX MiB/s", 102, 170), kMebi, Tier::fast, {}, kIntegrated},
    {&catalog::interconnect_received_bytes, {"kind", "c2c"}, gpm_link_total("GPM C2C data RX MiB/s", 103, 170), kMebi, Tier::fast, {}, kIntegrated},
    {&catalog::interconnect_links, {"kind", "c2c"}, field("NVML_FI_DEV_C2C_LINK_COUNT", 170, Tier::slow), 1, Tier::slow, {}, kZeroIsUnknown},
    {&catalog::interconnect_links_up, {"kind", "c2c"}, c2c_up_fields("NVML_FI_DEV_C2C_LINK_GET_STATUS", 171), 1, Tier::slow},
    {&catalog::interconnect_links, {"kind", "nvlink"}, field("NVML_FI_DEV_NVLINK_LINK_COUNT", 91, Tier::slow), 1, Tier::slow, {}, kZeroIsUnknown},
    {&catalog::interconnect_links_up, {"kind", "nvlink"}, links_up("nvmlDeviceGetNvLinkState"), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "crc_flit"}, field("NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", 38, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "crc_data"}, field("NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", 45, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "replay"}, field("NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", 52, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "recovery"}, field("NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", 59, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "ecc_data"}, field("NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL", 160, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "crc_flit"}, all_link_errors("nvmlDeviceGetNvLinkErrorCounter", 2), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "crc_data"}, all_link_errors("nvmlDeviceGetNvLinkErrorCounter", 3), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "replay"}, all_link_errors("nvmlDeviceGetNvLinkErrorCounter", 0), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "recovery"}, all_link_errors("nvmlDeviceGetNvLinkErrorCounter", 1), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "ecc_data"}, all_link_errors("nvmlDeviceGetNvLinkErrorCounter", 4), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "recovery"}, field("NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS", 213, Tier::slow, nvml::kAllLinks), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "recovery"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS", 213, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "discard"}, field("NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS", 212, Tier::slow, nvml::kAllLinks), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "discard"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS", 212, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_bit_error_ratio, {"kind", "nvlink", "error", "symbol"}, worst_ber_field("NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER", 222), 1, Tier::slow, {}, kRatio},
    {&catalog::interconnect_bit_error_ratio, {"kind", "nvlink", "error", "effective"}, worst_ber_field("NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER", 220), 1, Tier::slow, {}, kRatio},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "malformed_packet"}, field("NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS", 206, Tier::slow, nvml::kAllLinks), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "buffer_overrun"}, field("NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS", 207, Tier::slow, nvml::kAllLinks), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "receive"}, field("NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS", 208, Tier::slow, nvml::kAllLinks), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "local_link_integrity"}, field("NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS", 211, Tier::slow, nvml::kAllLinks), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "recovery_failed"}, field("NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS", 214, Tier::slow, nvml::kAllLinks), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "malformed_packet"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS", 206, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "buffer_overrun"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS", 207, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "receive"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS", 208, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "local_link_integrity"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS", 211, Tier::slow), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "recovery_failed"}, all_link_fields("NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS", 214, Tier::slow), 1, Tier::slow},
});

// Corrections, not errors: a link at full speed makes them all the time.
inline constexpr std::string_view kFecBins[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"};
inline constexpr auto kFecRows = each_place(kFecBins, [](std::size_t bin, std::string_view label) {
  NvidiaSource source = all_link_fields("NVML_FI_DEV_NVLINK_COUNT_FEC_HISTORY_0", 235, Tier::slow);
  source.read.argument += bin;
  return Row{&catalog::interconnect_fec_history, {"kind", "nvlink", "bin", label}, source, 1, Tier::slow};
});

// Rows of each link, with `links: each`.
template <unsigned Field>
constexpr Row link_bytes(const MetricDescriptor& family, std::string_view name, double scale, unsigned link, std::string_view label) {
  return {&family, {"kind", "nvlink", "link", label}, link_field(name, link, Field, Tier::normal), scale, Tier::normal, {}, kPositive};
}
constexpr Row link_error(std::string_view error, unsigned counter, unsigned link, std::string_view label) {
  return {&catalog::link_errors, {"kind", "nvlink", "link", label, "error", error}, link_errors("nvmlDeviceGetNvLinkErrorCounter", link, counter), 1, Tier::slow};
}
template <unsigned Field>
constexpr Row link_ber(std::string_view error, std::string_view name, unsigned link, std::string_view label) {
  return {&catalog::link_bit_error_ratio, {"kind", "nvlink", "link", label, "error", error}, link_ber_field(name, link, Field), 1, Tier::slow, {}, kRatio};
}
template <unsigned Field>
constexpr Row c2c_error(std::string_view error, std::string_view name, unsigned link, std::string_view label) {
  return {&catalog::link_errors, {"kind", "c2c", "link", label, "error", error}, link_field(name, link, Field, Tier::slow), 1, Tier::slow};
}
using LinkRow = Row (*)(unsigned link, std::string_view label);
inline constexpr LinkRow kLinkRows[] = {
    [](unsigned link, std::string_view label) { return Row{&catalog::link_up, {"kind", "nvlink", "link", label}, link_state("nvmlDeviceGetNvLinkState", link), 1, Tier::slow}; },
    [](unsigned link, std::string_view label) { return link_bytes<138>(catalog::link_transmitted_bytes, "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", kKibi, link, label); },
    [](unsigned link, std::string_view label) { return link_bytes<139>(catalog::link_received_bytes, "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", kKibi, link, label); },
    [](unsigned link, std::string_view label) { return link_bytes<202>(catalog::link_transmitted_bytes, "NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES", 1, link, label); },
    [](unsigned link, std::string_view label) { return link_bytes<204>(catalog::link_received_bytes, "NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES", 1, link, label); },
    [](unsigned link, std::string_view label) { return link_error("replay", 0, link, label); },  // nvmlNvLinkErrorCounter_t
    [](unsigned link, std::string_view label) { return link_error("recovery", 1, link, label); },
    [](unsigned link, std::string_view label) { return link_error("crc_flit", 2, link, label); },
    [](unsigned link, std::string_view label) { return link_error("crc_data", 3, link, label); },
    [](unsigned link, std::string_view label) { return link_error("ecc_data", 4, link, label); },
    [](unsigned link, std::string_view label) { return link_ber<222>("symbol", "NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER", link, label); },
    [](unsigned link, std::string_view label) { return link_ber<220>("effective", "NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER", link, label); },
};
// The links to the CPU (NVLink-C2C): kMostC2cLinks of them.
inline constexpr LinkRow kC2cRows[] = {
    [](unsigned link, std::string_view label) { return Row{&catalog::link_up, {"kind", "c2c", "link", label}, link_field("NVML_FI_DEV_C2C_LINK_GET_STATUS", link, 171, Tier::slow), 1, Tier::slow}; },
    [](unsigned link, std::string_view label) { return c2c_error<231>("crc", "NVML_FI_DEV_C2C_LINK_ERROR_INTR", link, label); },
    [](unsigned link, std::string_view label) { return c2c_error<232>("replay", "NVML_FI_DEV_C2C_LINK_ERROR_REPLAY", link, label); },
    [](unsigned link, std::string_view label) { return c2c_error<233>("replay_back_to_back", "NVML_FI_DEV_C2C_LINK_ERROR_REPLAY_B2B", link, label); },
};
// NVML_NVLINK_MAX_LINKS has grown from 6 to 36.
inline constexpr std::string_view kLinkNames[] = {
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17",
    "18", "19", "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32", "33", "34", "35"};
static_assert(std::size(kLinkNames) == nvml::kMostLinks);

inline constexpr auto kFabricRows = std::to_array<Row>({
    {&catalog::fabric_state, {"state", "not_started"}, fabric_state("nvmlDeviceGetGpuFabricInfoV state", 1), 1, Tier::slow},
    {&catalog::fabric_state, {"state", "in_progress"}, fabric_state("nvmlDeviceGetGpuFabricInfoV state", 2), 1, Tier::slow},
    {&catalog::fabric_state, {"state", "completed"}, fabric_state("nvmlDeviceGetGpuFabricInfoV state", nvml::kFabricCompleted), 1, Tier::slow},
    {&catalog::fabric_state, {"state", "failed"}, fabric_state("nvmlDeviceGetGpuFabricInfoV status", kFabricFailed), 1, Tier::slow},
    {&catalog::fabric_health, {"state", "healthy"}, fabric_health("nvmlDeviceGetGpuFabricInfoV health", FabricHealth::healthy), 1, Tier::slow},
    {&catalog::fabric_health, {"state", "unhealthy"}, fabric_health("nvmlDeviceGetGpuFabricInfoV health", FabricHealth::unhealthy), 1, Tier::slow},
    {&catalog::fabric_health, {"state", "limited_capacity"}, fabric_health("nvmlDeviceGetGpuFabricInfoV health", FabricHealth::limited_capacity), 1, Tier::slow},
});
// clang-format on

}  // namespace gpumeter::nvidia
