#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

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

inline double holding(const Model& model, Nanoseconds time, int kind) {
  return static_cast<double>(model.timeline().holding(static_cast<Event::Kind>(kind), time));
}
inline double absent(const Model& model, Nanoseconds time, int kind) {
  return model.timeline().holds(static_cast<Event::Kind>(kind), time) ? 0 : 1;
}
/// Counts one a second while an event holds.
inline double each_second(const Model& model, Nanoseconds time, int kind) {
  return std::floor(model.timeline().held_seconds(static_cast<Event::Kind>(kind), time));
}
/// Corrected memory errors: of normal work, and of events.
inline double corrected_errors(const Model& model, Nanoseconds time, int busy_seconds) {
  return once_in(model, time, busy_seconds) +
         10 * each_second(model, time, static_cast<int>(Event::Kind::corrected));
}
inline double packet_replays(const Model& model, Nanoseconds time, int busy_seconds) {
  return once_in(model, time, busy_seconds) +
         each_second(model, time, static_cast<int>(Event::Kind::pcie_replays));
}
inline double recovery(const Model& model, Nanoseconds time, int action) {
  for (const Event& event : model.timeline().events()) {
    const bool holds = event.kind == Event::Kind::recovery && event.begin <= time && time < event.end;
    if (holds) return event.code == action ? 1 : 0;
  }
  return action == 0 ? 1 : 0;
}

constexpr std::uint64_t number(Event::Kind kind) { return static_cast<std::uint64_t>(kind); }
constexpr SimulatedSource begun_of(Event::Kind kind, std::string_view name) {
  return reads<&begun>(name, number(kind));
}
constexpr SimulatedSource holding_of(Event::Kind kind, std::string_view name) {
  return reads<&holding>(name, number(kind));
}
inline constexpr auto kLosses = begun_of(Event::Kind::lose, "events: lose");
inline constexpr auto kReturns = reads<&over>("events: lose, over", number(Event::Kind::lose));
inline constexpr auto kUncorrected = holding_of(Event::Kind::ecc, "events: ecc");
inline constexpr auto kNever = fixed(0);

/// The documented fatal and common codes; all others count as `other`.
inline constexpr int kXids[] = {13,  31,  43,  45,  48,  62,  63,  64,  68,  74,  79,  92,  94, 95,
                                109, 110, 119, 120, 136, 140, 142, 143, 151, 154, 155, 156, 158};
inline constexpr int kOtherXid = 0;
// The names of the codes, for static storage.
inline constexpr std::string_view kXidNames[] = {
    "13",  "31",  "43",  "45",  "48",  "62",  "63",  "64",  "68",  "74",  "79",  "92",  "94",  "95",
    "109", "110", "119", "120", "136", "140", "142", "143", "151", "154", "155", "156", "158", "other"};

inline bool is_xid(const Event& event, int code) {
  if (event.kind == Event::Kind::lose) return code == 79;   // the GPU has fallen off the bus
  if (event.kind == Event::Kind::hang) return code == 119;  // the card's own processor does not answer
  if (event.kind != Event::Kind::xid) return false;
  const bool is_known = std::find(std::begin(kXids), std::end(kXids), event.code) != std::end(kXids);
  return code == (is_known ? event.code : kOtherXid);
}
inline double xid_count(const Model& model, Nanoseconds time, int code) {
  const auto events = model.timeline().events();
  return static_cast<double>(std::count_if(events.begin(), events.end(), [&](const Event& event) {
    return event.begin <= time && is_xid(event, code);
  }));
}
/// Unix time of the last XID; 0 if there was none.
inline Reader bind_xid_time(SimulatedContext& context, const ReadSource& source) {
  return bind_value(context, [code = static_cast<int>(source.argument)](const SimulatedContext& from) {
    std::optional<Nanoseconds> last;
    for (const Event& event : from.model().timeline().events()) {
      if (event.begin <= from.time() && is_xid(event, code))
        last = std::max(last.value_or(event.begin), event.begin);
    }
    return last ? to_seconds(from.simulation().realtime_of(*last)) : 0;
  });
}

// clang-format off
struct Mode {
  std::string_view mode, state;
  bool holds;
};
inline constexpr Mode kModes[] = {
    {"persistence", "enabled", true}, {"persistence", "disabled", false},
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
inline constexpr auto kEccModeRows = std::to_array<Row>({
    {&catalog::mode, {"mode", "ecc", "state", "enabled"}, reads<&absent>("events: no ecc-mode", number(Event::Kind::ecc_mode)), 1, Tier::slow},
    {&catalog::mode, {"mode", "ecc", "state", "disabled"}, holding_of(Event::Kind::ecc_mode, "events: ecc-mode"), 1, Tier::slow},
});

inline constexpr std::string_view kLicenseStates[] = {"unlicensed", "licensed"};
inline constexpr auto kLicenseRows = one_of(catalog::license_state, "state", kLicenseStates, "licensed");
inline constexpr auto kRecoveryRows = each_place(kRecoveryActions, [](std::size_t place, std::string_view action) {
  return Row{&catalog::recovery_action, {"action", action}, reads<&recovery>("events: recovery", place), 1, Tier::slow};
});
inline constexpr auto kFabricRows = std::to_array<Row>({
    {&catalog::fabric_state, {"state", "not_supported"}, kNever, 1, Tier::slow},
    {&catalog::fabric_state, {"state", "not_started"}, kNever, 1, Tier::slow},
    {&catalog::fabric_state, {"state", "in_progress"}, kNever, 1, Tier::slow},
    {&catalog::fabric_state, {"state", "completed"}, reads<&absent>("events: no fabric", number(Event::Kind::fabric)), 1, Tier::slow},
    {&catalog::fabric_state, {"state", "failed"}, holding_of(Event::Kind::fabric, "events: fabric"), 1, Tier::slow},
    {&catalog::fabric_health, {"state", "healthy"}, reads<&absent>("events: no fabric-health", number(Event::Kind::fabric_health)), 1, Tier::slow},
    {&catalog::fabric_health, {"state", "unhealthy"}, holding_of(Event::Kind::fabric_health, "events: fabric-health"), 1, Tier::slow},
    {&catalog::fabric_health, {"state", "limited_capacity"}, kNever, 1, Tier::slow},
});

// A mask of 0: the driver knows the reason, but it never holds here.
struct Throttle {
  std::string_view cause, reason;
  unsigned mask;
};
inline constexpr Throttle kCauses[] = {
    {"power", "", Model::kPowerCap | Model::kPowerBrake}, {"thermal", "", Model::kSoftwareThermal | Model::kHardwareThermal},
    {"current", "", 0}, {"reliability", "", Model::kReliability}, {"hardware", "", Model::kSlowdown}, {"sync", "", 0}, {"software", "", 0},
};
inline constexpr Throttle kReasons[] = {
    {"power", "sw_power_cap", Model::kPowerCap}, {"power", "hw_power_brake", Model::kPowerBrake},
    {"thermal", "sw_thermal", Model::kSoftwareThermal}, {"thermal", "hw_thermal", Model::kHardwareThermal},
    {"current", "vr_tdc", 0}, {"reliability", "board_limit", 0}, {"reliability", "reliability", Model::kReliability},
    {"hardware", "hw_slowdown", Model::kSlowdown}, {"sync", "sync_boost", 0},
    {"software", "applications_clocks", 0}, {"software", "display_clocks", 0},
};
inline constexpr auto kCauseRows = each(kCauses, [](const Throttle& row) {
  return Row{&catalog::throttled, {"cause", row.cause}, reads<&holds_any>("throttle_reasons", row.mask), 1, Tier::fast, state(catalog::throttle_seconds)};
});
inline constexpr auto kReasonRows = each(kReasons, [](const Throttle& row) {
  return Row{&catalog::throttle_reason_active, {"cause", row.cause, "reason", row.reason}, reads<&holds_any>("throttle_reasons", row.mask), 1, Tier::fast, state(catalog::throttle_reason_seconds)};
});

constexpr std::uint64_t xid_code(std::size_t place) { return static_cast<std::uint64_t>(place < std::size(kXids) ? kXids[place] : kOtherXid); }
static_assert(std::size(kXidNames) == std::size(kXids) + 1);
inline constexpr auto kXidRows = each_place(kXidNames, [](std::size_t place, std::string_view xid) {
  return Row{&catalog::xid_errors, {"xid", xid}, reads<&xid_count>("events: xid", xid_code(place)), 1, Tier::fast};
});
inline constexpr auto kXidTimeRows = each_place(kXidNames, [](std::size_t place, std::string_view xid) {
  return Row{&catalog::xid_last_timestamp, {"xid", xid}, {bind_xid_time, {"events: xid", xid_code(place)}}, 1, Tier::fast, {}, kZeroIsUnknown};
});

struct Errors {
  std::string_view severity, location;
  SimulatedSource count, lifetime;
};
inline constexpr Errors kMemoryErrors[] = {
    {"corrected", "dram", reads<&corrected_errors>("once_in, events: corrected", 900), reads<&once_in_lifetime>("once_in_lifetime", 900)},
    {"corrected", "sram", reads<&once_in>("once_in", 7200), reads<&once_in_lifetime>("once_in_lifetime", 7200)},
    {"uncorrected", "dram", kUncorrected, begun_of(Event::Kind::ecc, "events: ecc, begun")}, {"uncorrected", "sram", kNever, kNever},
    {"deferred", "dram", kNever, kNever}, {"deferred", "sram", kNever, kNever},
};
inline constexpr auto kErrorRows = each(kMemoryErrors, [](const Errors& row) {
  return Row{&catalog::memory_errors, {"severity", row.severity, "location", row.location}, row.count, 1, Tier::slow};
});
inline constexpr auto kHardwareErrorRows = std::to_array<Row>({
    {&catalog::hardware_errors, {"block", "gfx", "severity", "corrected"}, reads<&once_in>("once_in", 5400), 1, Tier::slow},
    {&catalog::hardware_errors, {"block", "gfx", "severity", "uncorrected"}, holding_of(Event::Kind::hardware, "events: hardware"), 1, Tier::slow},
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
    {&catalog::retired_pages_pending, {}, holding_of(Event::Kind::retirement, "events: retirement"), 1, Tier::slow},
    {&catalog::memory_unrepairable, {}, holding_of(Event::Kind::unrepairable, "events: unrepairable"), 1, Tier::slow},
    {&catalog::repair_pending, {"part", "channel"}, holding_of(Event::Kind::repair, "events: repair"), 1, Tier::slow},
    {&catalog::repair_pending, {"part", "tpc"}, kNever, 1, Tier::slow},
    {&catalog::row_remap_pending, {}, holding_of(Event::Kind::remap, "events: remap"), 1, Tier::slow},
    {&catalog::row_remap_failed, {}, holding_of(Event::Kind::remap_failure, "events: remap-failure"), 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "max"}, fixed(640), 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "high"}, kNever, 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "partial"}, kNever, 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "low"}, kNever, 1, Tier::slow},
    {&catalog::row_remap_banks, {"availability", "none"}, kNever, 1, Tier::slow},
    {&catalog::events, {"event", "reset"}, begun_of(Event::Kind::reset, "events: reset"), 1, Tier::normal},
    {&catalog::events, {"event", "memory_lost"}, kNever, 1, Tier::normal},
    {&catalog::events, {"event", "ras"}, kNever, 1, Tier::normal},
    {&catalog::events, {"event", "bus_lost"}, kLosses, 1, Tier::normal},
    {&catalog::events, {"event", "returned"}, kReturns, 1, Tier::normal},
    {&catalog::pcie_replays, {}, reads<&packet_replays>("once_in, events: pcie-replays", 1800), 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "correctable", "kind", "receiver"}, kNever, 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "correctable", "kind", "bad_tlp"}, reads<&once_in>("once_in", 3600), 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "correctable", "kind", "bad_dllp"}, kNever, 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "nonfatal", "kind", "completion_timeout"}, kNever, 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "fatal", "kind", "data_link_protocol"}, begun_of(Event::Kind::pcie_fatal, "events: pcie-fatal"), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "crc"}, reads<&once_in>("once_in", 1200), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "replay"}, reads<&each_second>("events: link-errors", number(Event::Kind::link_errors)), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "recovery"}, kNever, 1, Tier::slow},
});
// clang-format on

}  // namespace gpumeter::simulated
