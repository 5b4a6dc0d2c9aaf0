#pragma once

#include "collectors/nvidia/rows/sensors.hpp"

/// Rows of modes, memory errors, PCIe, events and the driver's recovery requests.
namespace gpumeter::nvidia {

// clang-format off
// Values of nvmlEnableState_t and nvmlComputeMode_t.
template <auto Function>
constexpr auto mode_rows(std::string_view mode, std::string_view call_name, unsigned which = 0) {
  return std::to_array<Row>({
    {&catalog::mode, {"mode", mode, "state", "enabled"}, is<Function>(call_name, 1, which), 1, Tier::slow},
    {&catalog::mode, {"mode", mode, "state", "disabled"}, is<Function>(call_name, 0, which), 1, Tier::slow},
  });
}
inline constexpr auto kPersistenceRows = mode_rows<&F::nvmlDeviceGetPersistenceMode>("persistence", "nvmlDeviceGetPersistenceMode");
inline constexpr auto kDisplayRows = mode_rows<&F::nvmlDeviceGetDisplayActive>("display", "nvmlDeviceGetDisplayActive");
inline constexpr auto kEccModeRows = mode_rows<&F::nvmlDeviceGetEccMode>("ecc", "nvmlDeviceGetEccMode");
inline constexpr auto kEccPendingRows = mode_rows<&F::nvmlDeviceGetEccMode>("ecc_pending", "nvmlDeviceGetEccMode pending", 1);
inline constexpr auto kMigModeRows = mode_rows<&F::nvmlDeviceGetMigMode>("mig", "nvmlDeviceGetMigMode");
inline constexpr auto kMigPendingRows = mode_rows<&F::nvmlDeviceGetMigMode>("mig_pending", "nvmlDeviceGetMigMode pending", 1);
inline constexpr auto kOtherModeRows = std::to_array<Row>({
    {&catalog::mode, {"mode", "compute", "state", "default"}, is<&F::nvmlDeviceGetComputeMode>("nvmlDeviceGetComputeMode", 0), 1, Tier::slow},
    {&catalog::mode, {"mode", "compute", "state", "exclusive_thread"}, is<&F::nvmlDeviceGetComputeMode>("nvmlDeviceGetComputeMode", 1), 1, Tier::slow},
    {&catalog::mode, {"mode", "compute", "state", "prohibited"}, is<&F::nvmlDeviceGetComputeMode>("nvmlDeviceGetComputeMode", 2), 1, Tier::slow},
    {&catalog::mode, {"mode", "compute", "state", "exclusive_process"}, is<&F::nvmlDeviceGetComputeMode>("nvmlDeviceGetComputeMode", 3), 1, Tier::slow},
    {&catalog::mode, {"mode", "confidential", "state", "enabled"}, confidential(true), 1, Tier::slow},
    {&catalog::mode, {"mode", "confidential", "state", "disabled"}, confidential(false), 1, Tier::slow},
    {&catalog::mode, {"mode", "confidential_multi_gpu", "state", "none"}, multi_gpu(nvml::kMultiGpuNone), 1, Tier::slow},
    {&catalog::mode, {"mode", "confidential_multi_gpu", "state", "protected_pcie"}, multi_gpu(nvml::kMultiGpuProtectedPcie), 1, Tier::slow},
    {&catalog::mode, {"mode", "confidential_multi_gpu", "state", "nvle"}, multi_gpu(nvml::kMultiGpuNvle), 1, Tier::slow},
});

// nvmlMemoryLocation_t. From Ampere on the driver counts SRAM as a whole; earlier ones count each part.
struct Location {
  std::string_view name;
  unsigned id;
};
inline constexpr Location kWholes[] = {{"dram", 2}, {"sram", 7}};
inline constexpr Location kParts[] = {{"l1", 0}, {"l2", 1}, {"register_file", 3}, {"texture", 4}, {"shared", 5}, {"cbu", 6}};
constexpr auto ecc_rows(const MetricDescriptor& family, unsigned counter, std::string_view severity, unsigned type) {
  return each(kWholes, [&](const Location& location) {
    return Row{&family, {"severity", severity, "location", location.name}, ecc("nvmlDeviceGetMemoryErrorCounter", type, counter, location.id), 1, Tier::slow};
  });
}
constexpr auto ecc_part_rows(const MetricDescriptor& family, unsigned counter, std::string_view severity, unsigned type) {
  return each(kParts, [&](const Location& location) {
    return Row{&family, {"severity", severity, "location", location.name}, ecc_part("nvmlDeviceGetMemoryErrorCounter", type, counter, location.id), 1, Tier::slow};
  });
}
inline constexpr auto kEccRows = joined(
    ecc_rows(catalog::memory_errors, nvml::kVolatile, "corrected", nvml::kCorrected),
    ecc_rows(catalog::memory_errors, nvml::kVolatile, "uncorrected", nvml::kUncorrected),
    ecc_rows(catalog::memory_lifetime_errors, nvml::kAggregate, "corrected", nvml::kCorrected),
    ecc_rows(catalog::memory_lifetime_errors, nvml::kAggregate, "uncorrected", nvml::kUncorrected),
    ecc_part_rows(catalog::memory_errors, nvml::kVolatile, "corrected", nvml::kCorrected),
    ecc_part_rows(catalog::memory_errors, nvml::kVolatile, "uncorrected", nvml::kUncorrected),
    ecc_part_rows(catalog::memory_lifetime_errors, nvml::kAggregate, "corrected", nvml::kCorrected),
    ecc_part_rows(catalog::memory_lifetime_errors, nvml::kAggregate, "uncorrected", nvml::kUncorrected));

inline constexpr Traits kFlag{.min = 0, .max = 1};
inline constexpr auto kMemoryHealthRows = std::to_array<Row>({
    {&catalog::retired_pages, {"cause", "single_bit"}, field("NVML_FI_DEV_RETIRED_SBE", 29, Tier::slow), 1, Tier::slow},
    {&catalog::retired_pages, {"cause", "double_bit"}, field("NVML_FI_DEV_RETIRED_DBE", 30, Tier::slow), 1, Tier::slow},
    {&catalog::retired_pages_pending, {}, field("NVML_FI_DEV_RETIRED_PENDING", 31, Tier::slow), 1, Tier::slow},
    {&catalog::remapped_rows, {"cause", "corrected"}, field("NVML_FI_DEV_REMAPPED_COR", 142, Tier::slow), 1, Tier::slow},
    {&catalog::remapped_rows, {"cause", "uncorrected"}, field("NVML_FI_DEV_REMAPPED_UNC", 143, Tier::slow), 1, Tier::slow},
    {&catalog::remapped_rows_inactive, {"cause", "corrected"}, field("NVML_FI_DEV_REMAPPED_ROWS_COR_INACTIVE", 301, Tier::slow), 1, Tier::slow},
    {&catalog::remapped_rows_inactive, {"cause", "uncorrected"}, field("NVML_FI_DEV_REMAPPED_ROWS_UNC_INACTIVE", 302, Tier::slow), 1, Tier::slow},
    {&catalog::memory_unrepairable, {}, part<&F::nvmlDeviceGetUnrepairableMemoryFlag_v1, &nvml::UnrepairableMemory::is_unrepairable>("nvmlDeviceGetUnrepairableMemoryFlag_v1"), 1, Tier::slow, {}, kFlag},
    {&catalog::repair_pending, {"part", "channel"}, part<&F::nvmlDeviceGetRepairStatus, &nvml::RepairStatus::channel_pending>("nvmlDeviceGetRepairStatus channel"), 1, Tier::slow, {}, kFlag},
    {&catalog::repair_pending, {"part", "tpc"}, part<&F::nvmlDeviceGetRepairStatus, &nvml::RepairStatus::tpc_pending>("nvmlDeviceGetRepairStatus TPC"), 1, Tier::slow, {}, kFlag},
    {&catalog::row_remap_pending, {}, field("NVML_FI_DEV_REMAPPED_PENDING", 144, Tier::slow), 1, Tier::slow},
    {&catalog::row_remap_failed, {}, field("NVML_FI_DEV_REMAPPED_FAILURE", 145, Tier::slow), 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "max"}, part<&F::nvmlDeviceGetRowRemapperHistogram, &nvml::RowRemapperHistogram::max>("nvmlDeviceGetRowRemapperHistogram"), 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "high"}, part<&F::nvmlDeviceGetRowRemapperHistogram, &nvml::RowRemapperHistogram::high>("nvmlDeviceGetRowRemapperHistogram"), 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "partial"}, part<&F::nvmlDeviceGetRowRemapperHistogram, &nvml::RowRemapperHistogram::partial>("nvmlDeviceGetRowRemapperHistogram"), 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "low"}, part<&F::nvmlDeviceGetRowRemapperHistogram, &nvml::RowRemapperHistogram::low>("nvmlDeviceGetRowRemapperHistogram"), 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "none"}, part<&F::nvmlDeviceGetRowRemapperHistogram, &nvml::RowRemapperHistogram::none>("nvmlDeviceGetRowRemapperHistogram"), 1, Tier::slow},
});

// Bytes come from GPM's counters (driver 595 and later), otherwise from its rates (MiB/s), otherwise from the
// fields after they have proved to be wide. nvmlDeviceGetPcieThroughput is never called: it blocks for 20 ms.
inline constexpr Traits kWideBytes{.min = 0, .zero_is_unknown = true};
inline constexpr auto kPcieRows = std::to_array<Row>({
    {&catalog::pcie_transmitted_bytes, {}, gpm("GPM PCIe TX bytes", 255), 1, Tier::fast, {}, kPositive},
    {&catalog::pcie_received_bytes, {}, gpm("GPM PCIe RX bytes", 256), 1, Tier::fast, {}, kPositive},
    {&catalog::pcie_transmitted_bytes, {}, gpm_total("GPM PCIe TX MiB/s", 20), kMebi, Tier::fast, {}, kIntegrated},
    {&catalog::pcie_received_bytes, {}, gpm_total("GPM PCIe RX MiB/s", 21), kMebi, Tier::fast, {}, kIntegrated},
    {&catalog::pcie_transmitted_bytes, {}, wide_field("NVML_FI_DEV_PCIE_COUNT_TX_BYTES", 197, Tier::fast), 1, Tier::fast, {}, kWideBytes},
    {&catalog::pcie_received_bytes, {}, wide_field("NVML_FI_DEV_PCIE_COUNT_RX_BYTES", 198, Tier::fast), 1, Tier::fast, {}, kWideBytes},
    {&catalog::pcie_link_generation, {}, on_card<readers::bind_call<&F::nvmlDeviceGetCurrPcieLinkGeneration>>("nvmlDeviceGetCurrPcieLinkGeneration"), 1, Tier::slow, {}, kLinkGeneration},
    {&catalog::pcie_link_lanes, {}, on_card<readers::bind_call<&F::nvmlDeviceGetCurrPcieLinkWidth>>("nvmlDeviceGetCurrPcieLinkWidth"), 1, Tier::slow, {}, kLinkLanes},
    {&catalog::pcie_link_max_generation, {}, on_card<readers::bind_call<&F::nvmlDeviceGetMaxPcieLinkGeneration>>("nvmlDeviceGetMaxPcieLinkGeneration"), 1, Tier::slow, {}, kLinkGeneration},
    {&catalog::pcie_link_max_lanes, {}, on_card<readers::bind_call<&F::nvmlDeviceGetMaxPcieLinkWidth>>("nvmlDeviceGetMaxPcieLinkWidth"), 1, Tier::slow, {}, kLinkLanes},
    {&catalog::pcie_replays, {}, field("NVML_FI_DEV_PCIE_REPLAY_COUNTER", 94, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_replays, {}, call<&F::nvmlDeviceGetPcieReplayCounter>("nvmlDeviceGetPcieReplayCounter"), 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "correctable", "kind", "receiver"}, field("NVML_FI_DEV_PCIE_COUNT_RECEIVER_ERROR", 175, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "correctable", "kind", "bad_tlp"}, field("NVML_FI_DEV_PCIE_COUNT_BAD_TLP", 176, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "correctable", "kind", "bad_dllp"}, field("NVML_FI_DEV_PCIE_COUNT_BAD_DLLP", 178, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "nonfatal", "kind", "any"}, field("NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR", 179, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "fatal", "kind", "any"}, field("NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR", 180, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_link_events, {"event", "l0_to_recovery"}, field("NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER", 169, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_link_events, {"event", "nak_received"}, field("NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED", 174, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_link_events, {"event", "nak_sent"}, field("NVML_FI_DEV_PCIE_COUNT_NAKS_SENT", 177, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_link_events, {"event", "unsupported_request"}, field("NVML_FI_DEV_PCIE_COUNT_UNSUPPORTED_REQ", 181, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_link_events, {"event", "lcrc_error"}, field("NVML_FI_DEV_PCIE_COUNT_LCRC_ERROR", 182, Tier::slow), 1, Tier::slow},
    {&catalog::pcie_link_events, {"event", "lane_error"}, field("NVML_FI_DEV_PCIE_COUNT_LANE_ERROR", 183, Tier::slow), 1, Tier::slow},
});

// NVML_GPU_RECOVERY_ACTION_*, in their order.
inline constexpr std::string_view kRecoveryActions[] = {"none", "reset", "reboot", "drain_p2p", "drain_and_reset", "recover_imex"};
inline constexpr auto kRecoveryRows = each_place(kRecoveryActions, [](std::size_t place, std::string_view action) {
  return Row{&catalog::recovery_action, {"action", action}, field_is("NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", 230, Tier::slow, static_cast<unsigned>(place)), 1, Tier::slow};
});
// Newer drivers have further actions.
inline constexpr auto kOtherRecoveryRows = std::to_array<Row>({
    {&catalog::recovery_action, {"action", "other"}, field_beyond("NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", 230, Tier::slow, std::size(kRecoveryActions)), 1, Tier::slow},
});
inline constexpr auto kLicenseRows = std::to_array<Row>({
    {&catalog::license_state, {"state", "licensed"}, licensed(true), 1, Tier::slow},
    {&catalog::license_state, {"state", "unlicensed"}, licensed(false), 1, Tier::slow},
});

// The event thread counts these, so reading them requires no call to the GPU. Nothing is counted while the
// driver refuses to register for events.
inline constexpr Traits kReported{.wakes = false, .forgets = true};
inline constexpr Traits kReportedTime{.zero_is_unknown = true, .wakes = false, .forgets = true};
inline constexpr auto kXidRows = each_place(kXidNames, [](std::size_t place, std::string_view xid) {
  return Row{&catalog::xid_errors, {"xid", xid}, xid_count(place), 1, Tier::fast, {}, kReported};
});
inline constexpr auto kXidTimeRows = each_place(kXidNames, [](std::size_t place, std::string_view xid) {
  return Row{&catalog::xid_last_timestamp, {"xid", xid}, xid_time(place), 1, Tier::fast, {}, kReportedTime};
});
inline constexpr auto kEventRows = each_place(kEvents, [](std::size_t place, const EventKind& event) {
  return Row{&catalog::events, {"event", event.name}, event_count(place), 1, Tier::fast, {}, kReported};
});
// clang-format on

}  // namespace gpumeter::nvidia
