#pragma once

#include <array>
#include <string_view>

#include "collectors/amd/readers/events.hpp"
#include "collectors/amd/rows/firmware.hpp"
#include "collectors/api/catalog.hpp"

/// Rows of each xGMI link, of events on the PCI Express link, and of events of the compute driver.
namespace gpumeter::amd {

/// A link that the firmware may have: up to eight (kgd_pp_interface.h, NUM_XGMI_LINKS). MI300 and later.
struct XgmiLink {
  std::string_view label;
  AmdSource received, transmitted, status;
};
// clang-format off
inline constexpr XgmiLink kXgmiLinks[] = {
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

inline constexpr auto kLinkReceivedRows = each(kXgmiLinks, [](const XgmiLink& link) {
  const LabelSet labels("kind", "xgmi", "link", link.label);
  return Row{&catalog::link_received_bytes, labels, link.received, 1, Tier::normal, {}, kPositive};
});
inline constexpr auto kLinkTransmittedRows = each(kXgmiLinks, [](const XgmiLink& link) {
  const LabelSet labels("kind", "xgmi", "link", link.label);
  return Row{&catalog::link_transmitted_bytes, labels, link.transmitted, 1, Tier::normal, {}, kPositive};
});
inline constexpr auto kLinkUpRows = each(kXgmiLinks, [](const XgmiLink& link) {
  return Row{&catalog::link_up, {"kind", "xgmi", "link", link.label}, link.status, 1, Tier::slow};
});

// Counters since the driver was loaded, of MI300 and later.
// clang-format off
inline constexpr auto kPcieEventRows = std::to_array<Row>({
    {&catalog::pcie_link_events, {"event", "l0_to_recovery"}, blob_counter("gpu_metrics.pcie_l0_to_recov_count_acc"), 1, Tier::slow, {}, kPositive},
    {&catalog::pcie_link_events, {"event", "nak_received"}, blob_counter("gpu_metrics.pcie_nak_rcvd_count_acc"), 1, Tier::slow, {}, kPositive},
    {&catalog::pcie_link_events, {"event", "nak_sent"}, blob_counter("gpu_metrics.pcie_nak_sent_count_acc"), 1, Tier::slow, {}, kPositive},
});
// clang-format on

// The counts are in memory, so reading them does not wake the card.
inline constexpr Traits kReported{.min = 0, .wakes = false, .forgets = true};
inline constexpr auto kEventRows = each_place(kEvents, [](std::size_t place, const EventKind& event) {
  return Row{&catalog::events, {"event", event.name}, event_count(place), 1, Tier::fast, {}, kReported};
});

}  // namespace gpumeter::amd
