#pragma once

#include "collectors/nvidia/link_readers.hpp"
#include "collectors/nvidia/sensor_rows.hpp"

/// Rows of NVLink and the fabric.
namespace gpumeter::nvidia {

// clang-format off
// Fields 138 and 139 are sums of KiB over all links (scope: all ones); errors of all links are fields of their own, and
// from NVLink 5 on fields of each link, for which a driver may or may not have a sum.
inline constexpr auto kInterconnectRows = std::to_array<Row>({
    {&catalog::interconnect_transmitted_bytes, {"kind", "nvlink"}, field("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", 138, Tier::fast, nvml::kAllLinks), kKibi, Tier::fast, {}, kPositive},
    {&catalog::interconnect_received_bytes, {"kind", "nvlink"}, field("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", 139, Tier::fast, nvml::kAllLinks), kKibi, Tier::fast, {}, kPositive},
    {&catalog::interconnect_transmitted_bytes, {"kind", "nvlink"}, gpm_total("GPM NVLink TX MiB/s", 61), kMebi, Tier::fast, {}, {.min = 0, .counted_by = "integrated"}},
    {&catalog::interconnect_received_bytes, {"kind", "nvlink"}, gpm_total("GPM NVLink RX MiB/s", 60), kMebi, Tier::fast, {}, {.min = 0, .counted_by = "integrated"}},
    {&catalog::interconnect_links, {"kind", "nvlink"}, field("NVML_FI_DEV_NVLINK_LINK_COUNT", 91, Tier::slow), 1, Tier::slow, {}, {.zero_is_unknown = true}},
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

// NVML_NVLINK_MAX_LINKS has grown from 6 to 36.
inline constexpr std::string_view kLinkNames[] = {
    "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17",
    "18", "19", "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30", "31", "32", "33", "34", "35"};
static_assert(std::size(kLinkNames) == nvml::kMostLinks);
inline constexpr auto kLinkUpRows = each_place(kLinkNames, [](std::size_t place, std::string_view link) {
  return Row{&catalog::link_up, {"kind", "nvlink", "link", link}, link_state("nvmlDeviceGetNvLinkState", static_cast<unsigned>(place)), 1, Tier::slow};
});
constexpr auto link_bytes(const MetricDescriptor& family, std::string_view name, unsigned id, double scale) {
  return each_place(kLinkNames, [&](std::size_t place, std::string_view link) {
    return Row{&family, {"kind", "nvlink", "link", link}, link_field(name, static_cast<unsigned>(place), id, Tier::normal), scale, Tier::normal, {}, kPositive};
  });
}
// nvmlNvLinkErrorCounter_t
constexpr auto link_error_rows(std::string_view error, unsigned counter) {
  return each_place(kLinkNames, [&](std::size_t place, std::string_view link) {
    return Row{&catalog::link_errors, {"kind", "nvlink", "link", link, "error", error}, link_errors("nvmlDeviceGetNvLinkErrorCounter", static_cast<unsigned>(place), counter), 1, Tier::slow};
  });
}
inline constexpr auto kLinkRows = joined(
    kLinkUpRows,
    link_bytes(catalog::link_transmitted_bytes, "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", 138, kKibi),
    link_bytes(catalog::link_received_bytes, "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", 139, kKibi),
    link_bytes(catalog::link_transmitted_bytes, "NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES", 202, 1),
    link_bytes(catalog::link_received_bytes, "NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES", 204, 1),
    link_error_rows("replay", 0), link_error_rows("recovery", 1), link_error_rows("crc_flit", 2), link_error_rows("crc_data", 3),
    link_error_rows("ecc_data", 4));

inline constexpr auto kFabricRows = std::to_array<Row>({
    {&catalog::fabric_state, {"state", "not_started"}, fabric_state("nvmlDeviceGetGpuFabricInfoV state", 1), 1, Tier::slow},
    {&catalog::fabric_state, {"state", "in_progress"}, fabric_state("nvmlDeviceGetGpuFabricInfoV state", 2), 1, Tier::slow},
    {&catalog::fabric_state, {"state", "completed"}, fabric_state("nvmlDeviceGetGpuFabricInfoV state", 3), 1, Tier::slow},
    {&catalog::fabric_health, {"state", "healthy"}, fabric_health("nvmlDeviceGetGpuFabricInfoV health", FabricHealth::healthy), 1, Tier::slow},
    {&catalog::fabric_health, {"state", "unhealthy"}, fabric_health("nvmlDeviceGetGpuFabricInfoV health", FabricHealth::unhealthy), 1, Tier::slow},
    {&catalog::fabric_health, {"state", "limited_capacity"}, fabric_health("nvmlDeviceGetGpuFabricInfoV health", FabricHealth::limited_capacity), 1, Tier::slow},
});
// clang-format on

}  // namespace gpumeter::nvidia
