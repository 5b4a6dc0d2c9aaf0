#pragma once

#include <cmath>

#include "collectors/simulated/rows.hpp"

/// Health rows of a simulated device: modes, throttling, errors, events.
namespace gpumeter::simulated {

inline double holds_any(const Model& model, Nanoseconds time, int reasons) {
  return (model.throttle_reasons(time) & static_cast<unsigned>(reasons)) != 0 ? 1 : 0;
}
/// Counts an event that occurs once in `busy_seconds` of busy time.
inline double once_in(const Model& model, Nanoseconds time, int busy_seconds) {
  return std::floor(model.busy_seconds(time) / busy_seconds);
}
/// The same count since the card was made; 12 of the events are from before the opening.
inline double once_in_lifetime(const Model& model, Nanoseconds time, int busy_seconds) {
  return 12 + once_in(model, time, busy_seconds);
}
inline double begun(const Model& model, Nanoseconds time, int kind) {
  return static_cast<double>(model.timeline().begun(static_cast<Event::Kind>(kind), time));
}
inline double over(const Model& model, Nanoseconds time, int kind) {
  return static_cast<double>(model.timeline().over(static_cast<Event::Kind>(kind), time));
}

constexpr std::uint64_t number(Event::Kind kind) { return static_cast<std::uint64_t>(kind); }
inline constexpr auto kHangs = reads<&begun>("events: hang", number(Event::Kind::hang));
inline constexpr auto kLosses = reads<&begun>("events: lose", number(Event::Kind::lose));
inline constexpr auto kReturns = reads<&over>("events: lose, over", number(Event::Kind::lose));
inline constexpr auto kNever = fixed(0);

/// Unix time of the last loss; 0 if the device was never lost.
inline Reader bind_last_loss(SimulatedContext& context, const ReadSource&) {
  return [&context] {
    const auto begin = context.model().timeline().last_begin(Event::Kind::lose, context.time());
    return Sample::of(begin ? to_seconds(context.simulation().realtime_of(*begin)) : 0);
  };
}

// clang-format off
struct Mode {
  std::string_view mode, state;
  bool holds;
};
inline constexpr Mode kModes[] = {
    {"persistence", "enabled", true}, {"persistence", "disabled", false},
    {"ecc", "enabled", true}, {"ecc", "disabled", false},
    {"ecc_pending", "enabled", true}, {"ecc_pending", "disabled", false},
    {"mig", "enabled", false}, {"mig", "disabled", true},
    {"mig_pending", "enabled", false}, {"mig_pending", "disabled", true},
    {"compute", "default", true}, {"compute", "exclusive_process", false}, {"compute", "prohibited", false},
    {"display", "enabled", false}, {"display", "disabled", true},
    {"confidential", "enabled", false}, {"confidential", "disabled", true},
};
inline constexpr auto kModeRows = each(kModes, [](const Mode& mode) {
  return Row{&catalog::mode, {"mode", mode.mode, "state", mode.state}, fixed(mode.holds ? 1 : 0), 1, Tier::slow};
});

inline constexpr std::string_view kRecoveryActions[] = {"none", "reset", "reboot", "drain_p2p", "drain_and_reset"};
inline constexpr std::string_view kFabricStates[] = {"not_supported", "not_started", "in_progress", "completed"};
inline constexpr std::string_view kFabricHealths[] = {"healthy", "unhealthy", "limited_capacity"};
inline constexpr std::string_view kLicenseStates[] = {"unlicensed", "licensed"};
inline constexpr auto kRecoveryRows = one_of(catalog::recovery_action, "action", kRecoveryActions, "none");
inline constexpr auto kFabricRows = one_of(catalog::fabric_state, "state", kFabricStates, "completed");
inline constexpr auto kFabricHealthRows = one_of(catalog::fabric_health, "state", kFabricHealths, "healthy");
inline constexpr auto kLicenseRows = one_of(catalog::license_state, "state", kLicenseStates, "licensed");

// A mask of 0: the driver knows the reason, but it never holds here.
struct Throttle {
  std::string_view cause, reason;
  unsigned mask;
};
inline constexpr Throttle kCauses[] = {
    {"power", "", Model::kPowerCap}, {"thermal", "", Model::kSoftwareThermal | Model::kHardwareThermal},
    {"current", "", 0}, {"reliability", "", 0}, {"hardware", "", 0}, {"sync", "", 0}, {"software", "", 0},
};
inline constexpr Throttle kReasons[] = {
    {"power", "sw_power_cap", Model::kPowerCap}, {"power", "hw_power_brake", 0},
    {"thermal", "sw_thermal", Model::kSoftwareThermal}, {"thermal", "hw_thermal", Model::kHardwareThermal},
    {"current", "vr_tdc", 0}, {"reliability", "board_limit", 0}, {"reliability", "reliability", 0},
    {"hardware", "hw_slowdown", 0}, {"sync", "sync_boost", 0},
    {"software", "applications_clocks", 0}, {"software", "display_clocks", 0},
};
inline constexpr auto kCauseRows = each(kCauses, [](const Throttle& row) {
  return Row{&catalog::throttled, {"cause", row.cause}, reads<&holds_any>("throttle_reasons", row.mask), 1, Tier::fast, state(catalog::throttle_seconds)};
});
inline constexpr auto kReasonRows = each(kReasons, [](const Throttle& row) {
  return Row{&catalog::throttle_reason_active, {"cause", row.cause, "reason", row.reason}, reads<&holds_any>("throttle_reasons", row.mask), 1, Tier::fast, state(catalog::throttle_reason_seconds)};
});

// The documented fatal and common codes. A loss counts as 79 (the GPU fell off the bus), a hang as 119 (the
// card's own processor does not answer).
inline constexpr std::string_view kXids[] = {
    "13", "31", "43", "45", "48", "62", "63", "64", "68", "74", "79", "92", "94", "95", "109", "110",
    "119", "120", "136", "140", "142", "143", "151", "154", "155", "156", "158"};
inline constexpr auto kXidRows = each(kXids, [](std::string_view xid) {
  return Row{&catalog::xid_errors, {"xid", xid}, xid == "79" ? kLosses : xid == "119" ? kHangs : kNever, 1, Tier::normal};
});

struct Errors {
  std::string_view severity, location;
  SimulatedSource count, lifetime;
};
inline constexpr Errors kMemoryErrors[] = {
    {"corrected", "dram", reads<&once_in>("once_in", 900), reads<&once_in_lifetime>("once_in_lifetime", 900)},
    {"corrected", "sram", reads<&once_in>("once_in", 7200), reads<&once_in_lifetime>("once_in_lifetime", 7200)},
    {"uncorrected", "dram", kNever, kNever}, {"uncorrected", "sram", kNever, kNever},
    {"deferred", "dram", kNever, kNever}, {"deferred", "sram", kNever, kNever},
};
inline constexpr auto kErrorRows = each(kMemoryErrors, [](const Errors& row) {
  return Row{&catalog::memory_errors, {"severity", row.severity, "location", row.location}, row.count, 1, Tier::slow};
});
inline constexpr auto kHardwareErrorRows = std::to_array<Row>({
    {&catalog::hardware_errors, {"block", "gfx", "severity", "corrected"}, reads<&once_in>("once_in", 5400), 1, Tier::slow},
    {&catalog::hardware_errors, {"block", "gfx", "severity", "uncorrected"}, kNever, 1, Tier::slow},
    {&catalog::hardware_errors, {"block", "sdma", "severity", "corrected"}, kNever, 1, Tier::slow},
    {&catalog::hardware_errors, {"block", "sdma", "severity", "uncorrected"}, kNever, 1, Tier::slow},
});
inline constexpr auto kLifetimeErrorRows = each(kMemoryErrors, [](const Errors& row) {
  return Row{&catalog::memory_lifetime_errors, {"severity", row.severity, "location", row.location}, row.lifetime, 1, Tier::slow};
});

inline constexpr auto kHealthRows = std::to_array<Row>({
    {&catalog::suspended, {}, kNever, 1, Tier::normal},
    {&catalog::retired_pages, {"cause", "single_bit"}, kNever, 1, Tier::slow},
    {&catalog::retired_pages, {"cause", "double_bit"}, kNever, 1, Tier::slow},
    {&catalog::remapped_rows, {"cause", "corrected"}, kNever, 1, Tier::slow},
    {&catalog::remapped_rows, {"cause", "uncorrected"}, kNever, 1, Tier::slow},
    {&catalog::row_remap_pending, {}, kNever, 1, Tier::slow},
    {&catalog::row_remap_failed, {}, kNever, 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "max"}, fixed(640), 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "high"}, kNever, 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "partial"}, kNever, 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "low"}, kNever, 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "none"}, kNever, 1, Tier::slow},
    {&catalog::xid_last_timestamp, {"xid", "79"}, {bind_last_loss, {"events: lose"}}, 1, Tier::slow, {}, {.zero_is_unknown = true}},
    {&catalog::events, {"event", "reset"}, kNever, 1, Tier::normal},
    {&catalog::events, {"event", "memory_lost"}, kNever, 1, Tier::normal},
    {&catalog::events, {"event", "ras"}, kNever, 1, Tier::normal},
    {&catalog::events, {"event", "bus_lost"}, kLosses, 1, Tier::normal},
    {&catalog::events, {"event", "returned"}, kReturns, 1, Tier::normal},
    {&catalog::pcie_replays, {}, reads<&once_in>("once_in", 1800), 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "correctable", "kind", "receiver"}, kNever, 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "correctable", "kind", "bad_tlp"}, reads<&once_in>("once_in", 3600), 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "correctable", "kind", "bad_dllp"}, kNever, 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "nonfatal", "kind", "completion_timeout"}, kNever, 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "fatal", "kind", "data_link_protocol"}, kNever, 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "crc"}, reads<&once_in>("once_in", 1200), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "replay"}, kNever, 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "recovery"}, kNever, 1, Tier::slow},
});
// clang-format on

}  // namespace gpumeter::simulated
