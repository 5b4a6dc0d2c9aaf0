#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "collectors/simulated/collector.hpp"
#include "collectors/table/row.hpp"

namespace gpumeter::simulated {
namespace {

using Row = MetricRow<SimulatedContext>;
using SimulatedSource = RowSource<SimulatedContext>;

/// Reads a value, unless an event makes every read fail.
template <class Value>
Reader bind_value(const SimulatedContext& context, Value value) {
  return [&context, value]() -> Sample {
    if (context.model().timeline().holds(Event::Kind::reads, context.time())) {
      return Sample::miss(ReadStatus::failed);
    }
    return Sample::of(value(context));
  };
}

/// Reads a quantity of the model. `Quantity` is a function of the model, the time and optionally the source's
/// number.
template <auto Quantity>
Reader reads(SimulatedContext& context, const ReadSource& source) {
  if constexpr (std::invocable<decltype(Quantity), const Model&, Nanoseconds, int>) {
    return bind_value(context, [argument = static_cast<int>(source.argument)](const SimulatedContext& from) {
      return static_cast<double>(std::invoke(Quantity, from.model(), from.time(), argument));
    });
  } else {
    return bind_value(context, [](const SimulatedContext& from) {
      return static_cast<double>(std::invoke(Quantity, from.model(), from.time()));
    });
  }
}

Reader bind_fixed(SimulatedContext& context, const ReadSource& source) {
  return bind_value(context, [value = static_cast<int>(source.argument)](const SimulatedContext&) {
    return static_cast<double>(value);
  });
}

/// A constant of the device: a small number that the row's scale multiplies.
constexpr SimulatedSource fixed(int value) { return {bind_fixed, "fixed", value}; }

/// A family whose value is 1 for the active state and 0 for the others.
template <std::size_t N>
constexpr std::array<Row, N> one_of(const MetricDescriptor& family, std::string_view label,
                                    const std::string_view (&states)[N], std::string_view holds) {
  return each(states, [&](std::string_view state) {
    return Row{&family, {label, state}, fixed(state == holds ? 1 : 0), 1, Tier::slow};
  });
}

// Activity rows of a simulated device: work, memory, power, temperature, clocks, traffic.

constexpr double kGibi = kMebi * 1024;
constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;

/// A part of the device, and its share of the whole.
struct Part {
  std::string_view name;
  double amount;
};

double memory_free(const Model& model, Nanoseconds time) {
  return Model::kMemoryGibibytes - Model::kReservedGibibytes - model.memory_used_gibibytes(time);
}
double margin(const Model& model, Nanoseconds time, int sensor) {
  return Model::kSensors[sensor].slowdown - model.temperature_celsius(time, sensor);
}
double power_limit(const Model& model, Nanoseconds) { return model.power_limit_watts(); }
double performance_state(const Model& model, Nanoseconds time) { return model.busy(time) ? 0 : 8; }
double voltage(const Model& model, Nanoseconds time) { return model.busy(time) ? 880 : 710; }
double link_generation(const Model& model, Nanoseconds time) {
  return model.busy(time) && !model.timeline().holds(Event::Kind::pcie_speed, time) ? 5 : 1;
}
double link_lanes(const Model& model, Nanoseconds time) {
  return model.timeline().holds(Event::Kind::pcie_width, time) ? 8 : 16;
}
double links_up(const Model& model, Nanoseconds time) {
  return model.timeline().holds(Event::Kind::links, time) ? 9 : 18;
}

// Rows of shares, and of bytes per busy second, scale these quantities.
constexpr SimulatedSource kUtilization = {reads<&Model::utilization>, "utilization"};
constexpr SimulatedSource kPower = {reads<&Model::power_watts>, "power_watts"};
constexpr SimulatedSource kBusySeconds = {reads<&Model::busy_seconds>, "busy_seconds"};
constexpr SimulatedSource kClock = {reads<&Model::clock_megahertz>, "clock_megahertz"};
constexpr SimulatedSource kFan = {reads<&Model::fan_percent>, "fan_percent"};
constexpr SimulatedSource kPowerLimit = {reads<&power_limit>, "power_limit_watts"};

// clang-format off
constexpr auto kUtilizationRows = std::to_array<Row>({
    {&catalog::utilization, {}, kUtilization, 1, Tier::fast, averaged(catalog::busy_seconds).with(kUtilizationExtremes), kRatio},
    {&catalog::memory_controller_utilization, {}, kUtilization, 0.55, Tier::fast, averaged(catalog::memory_controller_busy_seconds), kRatio},
    {&catalog::compute_active, {}, kUtilization, 0.82, Tier::fast, averaged(catalog::compute_active_seconds), kRatio},
    {&catalog::compute_occupancy, {}, kUtilization, 0.41, Tier::fast, averaged(catalog::compute_occupancy_seconds), kRatio},
    {&catalog::tensor_peak_seconds, {}, kBusySeconds, 0.42, Tier::fast},
    {&catalog::memory_bandwidth_utilization, {}, kUtilization, 0.6, Tier::fast, averaged(catalog::memory_bandwidth_utilization_seconds), kRatio},
});

constexpr Part kEngines[] = {{"graphics", 0.02}, {"compute", 1}, {"copy", 0.2}, {"encode", 0.05}, {"decode", 0.08}, {"jpeg", 0.03}, {"optical_flow", 0.01}};
constexpr auto kEngineRows = each(kEngines, [](const Part& engine) {
  return Row{&catalog::engine_utilization, {"engine", engine.name}, kUtilization, engine.amount, Tier::fast, averaged(catalog::engine_busy_seconds), kRatio};
});

constexpr Part kPipes[] = {{"tensor", 0.45}, {"fp64", 0.01}, {"fp32", 0.12}, {"fp16", 0.05}, {"int", 0.1}};
constexpr auto kPipeRows = each(kPipes, [](const Part& pipe) {
  return Row{&catalog::pipe_active, {"pipe", pipe.name}, kUtilization, pipe.amount, Tier::fast, averaged(catalog::pipe_active_seconds), kRatio};
});

// The shares add up to the tensor pipe's.
constexpr Part kTensorKinds[] = {{"fp16", 0.38}, {"int", 0.05}, {"fp64", 0.02}};
constexpr auto kTensorRows = each(kTensorKinds, [](const Part& kind) {
  return Row{&catalog::tensor_active, {"kind", kind.name}, kUtilization, kind.amount, Tier::fast, averaged(catalog::tensor_active_seconds), kRatio};
});

constexpr auto kMemoryRows = std::to_array<Row>({
    {&catalog::memory_size, {"memory", "vram"}, fixed(Model::kMemoryGibibytes), kGibi, Tier::once},
    {&catalog::memory_used, {"memory", "vram"}, {reads<&Model::memory_used_gibibytes>, "memory_used_gibibytes"}, kGibi, Tier::fast},
    {&catalog::memory_free, {"memory", "vram"}, {reads<&memory_free>, "memory_free"}, kGibi, Tier::fast},
    {&catalog::memory_reserved, {"memory", "vram"}, fixed(Model::kReservedGibibytes), kGibi, Tier::once},
    {&catalog::memory_size, {"memory", "bar1"}, fixed(128), kGibi, Tier::once},
    {&catalog::memory_used, {"memory", "bar1"}, fixed(8), kMebi, Tier::normal},
    {&catalog::memory_free, {"memory", "bar1"}, fixed(128 * 1024 - 8), kMebi, Tier::normal},
    {&catalog::peak_memory_bandwidth, {}, fixed(3350), kGiga, Tier::once},
});

constexpr auto kPowerRows = std::to_array<Row>({
    {&catalog::power, {}, kPower, 1, Tier::fast, averaged(catalog::energy_joules).with(kPowerExtremes), kPositive},
    {&catalog::power_instant, {}, {reads<&Model::power_instant_watts>, "power_instant_watts"}, 1, Tier::fast},
    {&catalog::power_limit, {"limit", "enforced"}, kPowerLimit, 1, Tier::slow},
    {&catalog::power_limit, {"limit", "default"}, kPowerLimit, 1, Tier::once},
    {&catalog::power_limit, {"limit", "min"}, kPowerLimit, 0.5, Tier::once},
    {&catalog::power_limit, {"limit", "max"}, kPowerLimit, 1, Tier::once},
    {&catalog::voltage, {"rail", "core"}, {reads<&voltage>, "voltage"}, kMilli, Tier::normal},
});

constexpr Part kRails[] = {{"gpu", 0.75}, {"memory", 0.2}};
constexpr auto kRailRows = each(kRails, [](const Part& rail) {
  return Row{&catalog::power_rail, {"rail", rail.name}, kPower, rail.amount, Tier::fast, averaged(catalog::rail_energy_joules), kPositive};
});

// Index of a sensor in Model::kSensors, which the readers take as their argument.
constexpr int kSensorPlaces[] = {0, 1, 2};
constexpr LabelSet sensor_label(int place) { return {"sensor", Model::kSensors[place].name}; }
constexpr LabelSet limit_label(int place, std::string_view limit) { return {"sensor", Model::kSensors[place].name, "limit", limit}; }

constexpr auto kTemperatureRows = each(kSensorPlaces, [](int place) {
  return Row{&catalog::temperature, sensor_label(place), {reads<&Model::temperature_celsius>, "temperature_celsius", place}, 1, Tier::fast};
});
constexpr auto kMarginRows = each(kSensorPlaces, [](int place) {
  return Row{&catalog::temperature_margin, sensor_label(place), {reads<&margin>, "slowdown limit - temperature_celsius", place}, 1, Tier::fast};
});
constexpr auto kSlowdownRows = each(kSensorPlaces, [](int place) {
  return Row{&catalog::temperature_limit, limit_label(place, "slowdown"), fixed(Model::kSensors[place].slowdown), 1, Tier::slow};
});
constexpr auto kShutdownRows = each(kSensorPlaces, [](int place) {
  return Row{&catalog::temperature_limit, limit_label(place, "shutdown"), fixed(Model::kSensors[place].shutdown), 1, Tier::slow};
});

constexpr auto kClockRows = std::to_array<Row>({
    {&catalog::fan_speed, {"fan", "0"}, kFan, kPercent, Tier::normal, {}, kRatio},
    {&catalog::fan_speed, {"fan", "1"}, kFan, kPercent, Tier::normal, {}, kRatio},
    {&catalog::fan_rpm, {"fan", "0"}, kFan, 120, Tier::normal},
    {&catalog::fan_rpm, {"fan", "1"}, kFan, 120, Tier::normal},
    {&catalog::clock, {"clock", "graphics"}, kClock, kMega, Tier::fast},
    {&catalog::clock, {"clock", "sm"}, kClock, kMega, Tier::fast},
    {&catalog::clock, {"clock", "memory"}, fixed(2619), kMega, Tier::fast},
    {&catalog::clock, {"clock", "video"}, kClock, 0.8 * kMega, Tier::fast},
    {&catalog::clock_max, {"clock", "graphics"}, fixed(Model::kClockMaxMegahertz), kMega, Tier::once},
    {&catalog::clock_max, {"clock", "sm"}, fixed(Model::kClockMaxMegahertz), kMega, Tier::once},
    {&catalog::clock_max, {"clock", "memory"}, fixed(2619), kMega, Tier::once},
    {&catalog::clock_max, {"clock", "video"}, fixed(Model::kClockMaxMegahertz), 0.8 * kMega, Tier::once},
    {&catalog::performance_state, {}, {reads<&performance_state>, "performance_state"}, 1, Tier::fast},
});

constexpr Part kPeakTeraflops[] = {{"fp64", 34}, {"fp32", 67}, {"tf32", 495}, {"bf16", 990}, {"fp16", 990}, {"fp8", 1980}, {"int8", 1980}};
constexpr auto kPeakRows = each(kPeakTeraflops, [](const Part& peak) {
  return Row{&catalog::peak_flops, {"dtype", peak.name, "source", "table"}, fixed(1), peak.amount * kTera, Tier::once};
});

constexpr auto kTrafficRows = std::to_array<Row>({
    {&catalog::pcie_link_generation, {}, {reads<&link_generation>, "link_generation"}, 1, Tier::normal},
    {&catalog::pcie_link_lanes, {}, {reads<&link_lanes>, "link_lanes"}, 1, Tier::normal},
    {&catalog::pcie_link_max_generation, {}, fixed(5), 1, Tier::once},
    {&catalog::pcie_link_max_lanes, {}, fixed(16), 1, Tier::once},
    {&catalog::pcie_received_bytes, {}, kBusySeconds, 8 * kGiga, Tier::fast},
    {&catalog::pcie_transmitted_bytes, {}, kBusySeconds, 3 * kGiga, Tier::fast},
    {&catalog::interconnect_received_bytes, {"kind", "nvlink"}, kBusySeconds, 120 * kGiga, Tier::fast},
    {&catalog::interconnect_transmitted_bytes, {"kind", "nvlink"}, kBusySeconds, 120 * kGiga, Tier::fast},
    {&catalog::interconnect_links, {"kind", "nvlink"}, fixed(18), 1, Tier::slow},
    {&catalog::interconnect_links_up, {"kind", "nvlink"}, {reads<&links_up>, "links_up"}, 1, Tier::slow},
});
// clang-format on

// Health rows of a simulated device: modes, throttling, errors, events.

double holds_any(const Model& model, Nanoseconds time, int reasons) {
  return (model.throttle_reasons(time) & static_cast<unsigned>(reasons)) != 0 ? 1 : 0;
}
/// Counts an event that occurs once in `busy_seconds` of busy time.
double once_in(const Model& model, Nanoseconds time, int busy_seconds) {
  return std::floor(model.busy_seconds(time) / busy_seconds);
}
/// The same count since the card was made; 12 of the events are from before the opening.
double once_in_lifetime(const Model& model, Nanoseconds time, int busy_seconds) {
  return 12 + once_in(model, time, busy_seconds);
}
double begun(const Model& model, Nanoseconds time, int kind) {
  return static_cast<double>(model.timeline().begun(static_cast<Event::Kind>(kind), time));
}
double over(const Model& model, Nanoseconds time, int kind) {
  return static_cast<double>(model.timeline().over(static_cast<Event::Kind>(kind), time));
}

double holding(const Model& model, Nanoseconds time, int kind) {
  return static_cast<double>(model.timeline().holding(static_cast<Event::Kind>(kind), time));
}
double absent(const Model& model, Nanoseconds time, int kind) {
  return model.timeline().holds(static_cast<Event::Kind>(kind), time) ? 0 : 1;
}
/// Counts one a second while an event holds.
double each_second(const Model& model, Nanoseconds time, int kind) {
  return std::floor(model.timeline().held_seconds(static_cast<Event::Kind>(kind), time));
}
/// Corrected memory errors: of normal work, and of events.
double corrected_errors(const Model& model, Nanoseconds time, int busy_seconds) {
  return once_in(model, time, busy_seconds) +
         10 * each_second(model, time, static_cast<int>(Event::Kind::corrected));
}
double packet_replays(const Model& model, Nanoseconds time, int busy_seconds) {
  return once_in(model, time, busy_seconds) +
         each_second(model, time, static_cast<int>(Event::Kind::pcie_replays));
}
double recovery(const Model& model, Nanoseconds time, int action) {
  for (const Event& event : model.timeline().events()) {
    const bool holds = event.kind == Event::Kind::recovery && event.begin <= time && time < event.end;
    if (holds) return event.code == action ? 1 : 0;
  }
  return action == 0 ? 1 : 0;
}

constexpr SimulatedSource begun_of(Event::Kind kind, std::string_view name) {
  return {reads<&begun>, name, kind};
}
constexpr SimulatedSource holding_of(Event::Kind kind, std::string_view name) {
  return {reads<&holding>, name, kind};
}
constexpr auto kLosses = begun_of(Event::Kind::lose, "events: lose");
constexpr SimulatedSource kReturns = {reads<&over>, "events: lose, over", Event::Kind::lose};
constexpr auto kUncorrected = holding_of(Event::Kind::ecc, "events: ecc");
constexpr auto kNever = fixed(0);

/// The documented fatal and common codes; all others count as `other`.
constexpr int kXids[] = {13,  31,  43,  45,  48,  62,  63,  64,  68,  74,  79,  92,  94, 95,
                         109, 110, 119, 120, 136, 140, 142, 143, 151, 154, 155, 156, 158};
constexpr int kOtherXid = 0;
// The names of the codes, for static storage.
constexpr std::string_view kXidNames[] = {
    "13",  "31",  "43",  "45",  "48",  "62",  "63",  "64",  "68",  "74",  "79",  "92",  "94",  "95",
    "109", "110", "119", "120", "136", "140", "142", "143", "151", "154", "155", "156", "158", "other"};

bool is_xid(const Event& event, int code) {
  if (event.kind == Event::Kind::lose) return code == 79;   // the GPU has fallen off the bus
  if (event.kind == Event::Kind::hang) return code == 119;  // the card's own processor does not answer
  if (event.kind != Event::Kind::xid) return false;
  const bool is_known = std::find(std::begin(kXids), std::end(kXids), event.code) != std::end(kXids);
  return code == (is_known ? event.code : kOtherXid);
}
double xid_count(const Model& model, Nanoseconds time, int code) {
  const auto events = model.timeline().events();
  return static_cast<double>(std::count_if(events.begin(), events.end(), [&](const Event& event) {
    return event.begin <= time && is_xid(event, code);
  }));
}
/// Unix time of the last XID; 0 if there was none.
Reader bind_xid_time(SimulatedContext& context, const ReadSource& source) {
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
constexpr Mode kModes[] = {
    {"persistence", "enabled", true}, {"persistence", "disabled", false},
    {"ecc_pending", "enabled", true}, {"ecc_pending", "disabled", false},
    {"mig", "enabled", false}, {"mig", "disabled", true},
    {"mig_pending", "enabled", false}, {"mig_pending", "disabled", true},
    {"compute", "default", true}, {"compute", "exclusive_process", false}, {"compute", "prohibited", false},
    {"display", "enabled", false}, {"display", "disabled", true},
    {"confidential", "enabled", false}, {"confidential", "disabled", true},
};
constexpr auto kModeRows = each(kModes, [](const Mode& mode) {
  return Row{&catalog::mode, {"mode", mode.mode, "state", mode.state}, fixed(mode.holds ? 1 : 0), 1, Tier::slow};
});
constexpr auto kEccModeRows = std::to_array<Row>({
    {&catalog::mode, {"mode", "ecc", "state", "enabled"}, {reads<&absent>, "events: no ecc-mode", Event::Kind::ecc_mode}, 1, Tier::slow},
    {&catalog::mode, {"mode", "ecc", "state", "disabled"}, holding_of(Event::Kind::ecc_mode, "events: ecc-mode"), 1, Tier::slow},
});

constexpr std::string_view kLicenseStates[] = {"unlicensed", "licensed"};
constexpr auto kLicenseRows = one_of(catalog::license_state, "state", kLicenseStates, "licensed");
constexpr auto kRecoveryRows = each_place(kRecoveryActions, [](std::size_t place, std::string_view action) {
  return Row{&catalog::recovery_action, {"action", action}, {reads<&recovery>, "events: recovery", place}, 1, Tier::slow};
});
constexpr auto kFabricRows = std::to_array<Row>({
    {&catalog::fabric_state, {"state", "not_supported"}, kNever, 1, Tier::slow},
    {&catalog::fabric_state, {"state", "not_started"}, kNever, 1, Tier::slow},
    {&catalog::fabric_state, {"state", "in_progress"}, kNever, 1, Tier::slow},
    {&catalog::fabric_state, {"state", "completed"}, {reads<&absent>, "events: no fabric", Event::Kind::fabric}, 1, Tier::slow},
    {&catalog::fabric_state, {"state", "failed"}, holding_of(Event::Kind::fabric, "events: fabric"), 1, Tier::slow},
    {&catalog::fabric_health, {"state", "healthy"}, {reads<&absent>, "events: no fabric-health", Event::Kind::fabric_health}, 1, Tier::slow},
    {&catalog::fabric_health, {"state", "unhealthy"}, holding_of(Event::Kind::fabric_health, "events: fabric-health"), 1, Tier::slow},
    {&catalog::fabric_health, {"state", "limited_capacity"}, kNever, 1, Tier::slow},
});

// A mask of 0: the driver knows the reason, but it never holds here.
struct Throttle {
  std::string_view cause, reason;
  unsigned mask;
};
constexpr Throttle kCauses[] = {
    {"power", "", Model::kPowerCap | Model::kPowerBrake}, {"thermal", "", Model::kSoftwareThermal | Model::kHardwareThermal},
    {"current", "", 0}, {"reliability", "", Model::kReliability}, {"hardware", "", Model::kSlowdown}, {"sync", "", 0}, {"software", "", 0},
};
constexpr Throttle kReasons[] = {
    {"power", "sw_power_cap", Model::kPowerCap}, {"power", "hw_power_brake", Model::kPowerBrake},
    {"thermal", "sw_thermal", Model::kSoftwareThermal}, {"thermal", "hw_thermal", Model::kHardwareThermal},
    {"current", "vr_tdc", 0}, {"reliability", "board_limit", 0}, {"reliability", "reliability", Model::kReliability},
    {"hardware", "hw_slowdown", Model::kSlowdown}, {"sync", "sync_boost", 0},
    {"software", "applications_clocks", 0}, {"software", "display_clocks", 0},
};
constexpr auto kCauseRows = each(kCauses, [](const Throttle& row) {
  return Row{&catalog::throttled, {"cause", row.cause}, {reads<&holds_any>, "throttle_reasons", row.mask}, 1, Tier::fast, state(catalog::throttle_seconds)};
});
constexpr auto kReasonRows = each(kReasons, [](const Throttle& row) {
  return Row{&catalog::throttle_reason_active, {"cause", row.cause, "reason", row.reason}, {reads<&holds_any>, "throttle_reasons", row.mask}, 1, Tier::fast, state(catalog::throttle_reason_seconds)};
});

constexpr int xid_code(std::size_t place) { return place < std::size(kXids) ? kXids[place] : kOtherXid; }
static_assert(std::size(kXidNames) == std::size(kXids) + 1);
constexpr auto kXidRows = each_place(kXidNames, [](std::size_t place, std::string_view xid) {
  return Row{&catalog::xid_errors, {"xid", xid}, {reads<&xid_count>, "events: xid", xid_code(place)}, 1, Tier::fast};
});
constexpr auto kXidTimeRows = each_place(kXidNames, [](std::size_t place, std::string_view xid) {
  return Row{&catalog::xid_last_timestamp, {"xid", xid}, {bind_xid_time, "events: xid", xid_code(place)}, 1, Tier::fast, {}, kZeroIsUnknown};
});

struct Errors {
  std::string_view severity, location;
  SimulatedSource count, lifetime;
};
constexpr Errors kMemoryErrors[] = {
    {"corrected", "dram", {reads<&corrected_errors>, "once_in, events: corrected", 900}, {reads<&once_in_lifetime>, "once_in_lifetime", 900}},
    {"corrected", "sram", {reads<&once_in>, "once_in", 7200}, {reads<&once_in_lifetime>, "once_in_lifetime", 7200}},
    {"uncorrected", "dram", kUncorrected, begun_of(Event::Kind::ecc, "events: ecc, begun")}, {"uncorrected", "sram", kNever, kNever},
    {"deferred", "dram", kNever, kNever}, {"deferred", "sram", kNever, kNever},
};
constexpr auto kErrorRows = each(kMemoryErrors, [](const Errors& row) {
  return Row{&catalog::memory_errors, {"severity", row.severity, "location", row.location}, row.count, 1, Tier::slow};
});
constexpr auto kHardwareErrorRows = std::to_array<Row>({
    {&catalog::hardware_errors, {"block", "gfx", "severity", "corrected"}, {reads<&once_in>, "once_in", 5400}, 1, Tier::slow},
    {&catalog::hardware_errors, {"block", "gfx", "severity", "uncorrected"}, holding_of(Event::Kind::hardware, "events: hardware"), 1, Tier::slow},
    {&catalog::hardware_errors, {"block", "sdma", "severity", "corrected"}, kNever, 1, Tier::slow},
    {&catalog::hardware_errors, {"block", "sdma", "severity", "uncorrected"}, kNever, 1, Tier::slow},
});
constexpr auto kLifetimeErrorRows = each(kMemoryErrors, [](const Errors& row) {
  return Row{&catalog::memory_lifetime_errors, {"severity", row.severity, "location", row.location}, row.lifetime, 1, Tier::slow};
});

constexpr auto kHealthRows = std::to_array<Row>({
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
    {&catalog::pcie_replays, {}, {reads<&packet_replays>, "once_in, events: pcie-replays", 1800}, 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "correctable", "kind", "receiver"}, kNever, 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "correctable", "kind", "bad_tlp"}, {reads<&once_in>, "once_in", 3600}, 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "correctable", "kind", "bad_dllp"}, kNever, 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "nonfatal", "kind", "completion_timeout"}, kNever, 1, Tier::slow},
    {&catalog::pcie_errors, {"severity", "fatal", "kind", "data_link_protocol"}, begun_of(Event::Kind::pcie_fatal, "events: pcie-fatal"), 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "crc"}, {reads<&once_in>, "once_in", 1200}, 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "replay"}, {reads<&each_second>, "events: link-errors", Event::Kind::link_errors}, 1, Tier::slow},
    {&catalog::interconnect_errors, {"kind", "nvlink", "error", "recovery"}, kNever, 1, Tier::slow},
});
// clang-format on

constexpr auto kActivity =
    joined(kUtilizationRows, kEngineRows, kPipeRows, kTensorRows, kMemoryRows, kPowerRows, kRailRows,
           kTemperatureRows, kMarginRows, kSlowdownRows, kShutdownRows, kClockRows, kPeakRows, kTrafficRows);
constexpr auto kHealth =
    joined(kModeRows, kCauseRows, kReasonRows, kErrorRows, kLifetimeErrorRows, kHardwareErrorRows, kXidRows,
           kXidTimeRows, kHealthRows, kRecoveryRows, kFabricRows, kLicenseRows, kEccModeRows);
static_assert(valid_table(kActivity));
static_assert(valid_table(kHealth));

constexpr auto kAll = joined(kActivity, kHealth);

}  // namespace

std::span<const Row> simulated_rows() noexcept { return kAll; }

std::span<const RowDoc> simulated_row_docs() {
  static const std::vector<RowDoc> docs = row_docs<SimulatedContext>({simulated_rows()});
  return docs;
}

}  // namespace gpumeter::simulated
