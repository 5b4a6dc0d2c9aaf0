#pragma once

#include "collectors/simulated/rows.hpp"

/// Activity rows of a simulated device: work, memory, power, temperature, clocks, traffic.
namespace gpumeter::simulated {

inline constexpr double kGibi = kMebi * 1024;
inline constexpr double kGiga = 1e9;
inline constexpr double kTera = 1e12;

/// A part of the device, and its share of the whole.
struct Part {
  std::string_view name;
  double amount;
};

inline double memory_free(const Model& model, Nanoseconds time) {
  return Model::kMemoryGibibytes - Model::kReservedGibibytes - model.memory_used_gibibytes(time);
}
inline double margin(const Model& model, Nanoseconds time, int sensor) {
  return Model::kSensors[sensor].slowdown - model.temperature_celsius(time, sensor);
}
inline double power_limit(const Model& model, Nanoseconds) { return model.power_limit_watts(); }
inline double performance_state(const Model& model, Nanoseconds time) { return model.busy(time) ? 0 : 8; }
inline double voltage(const Model& model, Nanoseconds time) { return model.busy(time) ? 880 : 710; }
inline double link_generation(const Model& model, Nanoseconds time) {
  return model.busy(time) && !model.timeline().holds(Event::Kind::pcie_speed, time) ? 5 : 1;
}
inline double link_lanes(const Model& model, Nanoseconds time) {
  return model.timeline().holds(Event::Kind::pcie_width, time) ? 8 : 16;
}
inline double links_up(const Model& model, Nanoseconds time) {
  return model.timeline().holds(Event::Kind::links, time) ? 9 : 18;
}

// Rows of shares, and of bytes per busy second, scale these quantities.
inline constexpr auto kUtilization = reads<&Model::utilization>("utilization");
inline constexpr auto kPower = reads<&Model::power_watts>("power_watts");
inline constexpr auto kBusySeconds = reads<&Model::busy_seconds>("busy_seconds");
inline constexpr auto kClock = reads<&Model::clock_megahertz>("clock_megahertz");
inline constexpr auto kFan = reads<&Model::fan_percent>("fan_percent");
inline constexpr auto kPowerLimit = reads<&power_limit>("power_limit_watts");

// clang-format off
inline constexpr auto kUtilizationRows = std::to_array<Row>({
    {&catalog::utilization, {}, kUtilization, 1, Tier::fast, averaged(catalog::busy_seconds).with(kUtilizationExtremes), kRatio},
    {&catalog::memory_controller_utilization, {}, kUtilization, 0.55, Tier::fast, averaged(catalog::memory_controller_busy_seconds), kRatio},
    {&catalog::compute_active, {}, kUtilization, 0.82, Tier::fast, averaged(catalog::compute_active_seconds), kRatio},
    {&catalog::compute_occupancy, {}, kUtilization, 0.41, Tier::fast, averaged(catalog::compute_occupancy_seconds), kRatio},
    {&catalog::memory_bandwidth_utilization, {}, kUtilization, 0.6, Tier::fast, averaged(catalog::memory_bandwidth_utilization_seconds), kRatio},
});

inline constexpr Part kEngines[] = {{"graphics", 0.02}, {"compute", 1}, {"copy", 0.2}, {"encode", 0.05}, {"decode", 0.08}, {"jpeg", 0.03}, {"optical_flow", 0.01}};
inline constexpr auto kEngineRows = each(kEngines, [](const Part& engine) {
  return Row{&catalog::engine_utilization, {"engine", engine.name}, kUtilization, engine.amount, Tier::fast, averaged(catalog::engine_busy_seconds), kRatio};
});

inline constexpr Part kPipes[] = {{"tensor", 0.45}, {"fp64", 0.01}, {"fp32", 0.12}, {"fp16", 0.05}, {"int", 0.1}};
inline constexpr auto kPipeRows = each(kPipes, [](const Part& pipe) {
  return Row{&catalog::pipe_active, {"pipe", pipe.name}, kUtilization, pipe.amount, Tier::fast, averaged(catalog::pipe_active_seconds), kRatio};
});

// The shares add up to the tensor pipe's.
inline constexpr Part kTensorKinds[] = {{"fp16", 0.38}, {"int", 0.05}, {"fp64", 0.02}};
inline constexpr auto kTensorRows = each(kTensorKinds, [](const Part& kind) {
  return Row{&catalog::tensor_active, {"kind", kind.name}, kUtilization, kind.amount, Tier::fast, averaged(catalog::tensor_active_seconds), kRatio};
});

inline constexpr auto kMemoryRows = std::to_array<Row>({
    {&catalog::memory_size, {"memory", "vram"}, fixed(Model::kMemoryGibibytes), kGibi, Tier::once},
    {&catalog::memory_used, {"memory", "vram"}, reads<&Model::memory_used_gibibytes>("memory_used_gibibytes"), kGibi, Tier::fast},
    {&catalog::memory_free, {"memory", "vram"}, reads<&memory_free>("memory_free"), kGibi, Tier::fast},
    {&catalog::memory_reserved, {"memory", "vram"}, fixed(Model::kReservedGibibytes), kGibi, Tier::once},
    {&catalog::memory_size, {"memory", "bar1"}, fixed(128), kGibi, Tier::once},
    {&catalog::memory_used, {"memory", "bar1"}, fixed(8), kMebi, Tier::normal},
    {&catalog::memory_free, {"memory", "bar1"}, fixed(128 * 1024 - 8), kMebi, Tier::normal},
    {&catalog::memory_read_bytes, {}, kBusySeconds, 1.4 * kTera, Tier::fast},
    {&catalog::memory_written_bytes, {}, kBusySeconds, 0.6 * kTera, Tier::fast},
    {&catalog::peak_memory_bandwidth, {}, fixed(3350), kGiga, Tier::once},
});

inline constexpr auto kPowerRows = std::to_array<Row>({
    {&catalog::power, {}, kPower, 1, Tier::fast, averaged(catalog::energy_joules).with(kPowerExtremes), kPositive},
    {&catalog::power_instant, {}, reads<&Model::power_instant_watts>("power_instant_watts"), 1, Tier::fast},
    {&catalog::power_limit, {"limit", "enforced"}, kPowerLimit, 1, Tier::slow},
    {&catalog::power_limit, {"limit", "default"}, kPowerLimit, 1, Tier::once},
    {&catalog::power_limit, {"limit", "min"}, kPowerLimit, 0.5, Tier::once},
    {&catalog::power_limit, {"limit", "max"}, kPowerLimit, 1, Tier::once},
    {&catalog::voltage, {"rail", "core"}, reads<&voltage>("voltage"), kMilli, Tier::normal},
});

inline constexpr Part kRails[] = {{"gpu", 0.75}, {"memory", 0.2}};
inline constexpr auto kRailRows = each(kRails, [](const Part& rail) {
  return Row{&catalog::power_rail, {"rail", rail.name}, kPower, rail.amount, Tier::fast, averaged(catalog::rail_energy_joules), kPositive};
});

// Index of a sensor in Model::kSensors, which the readers take as their argument.
inline constexpr int kSensorPlaces[] = {0, 1, 2};
constexpr LabelSet sensor_label(int place) { return {"sensor", Model::kSensors[place].name}; }
constexpr LabelSet limit_label(int place, std::string_view limit) { return {"sensor", Model::kSensors[place].name, "limit", limit}; }

inline constexpr auto kTemperatureRows = each(kSensorPlaces, [](int place) {
  return Row{&catalog::temperature, sensor_label(place), reads<&Model::temperature_celsius>("temperature_celsius", static_cast<std::uint64_t>(place)), 1, Tier::fast};
});
inline constexpr auto kMarginRows = each(kSensorPlaces, [](int place) {
  return Row{&catalog::temperature_margin, sensor_label(place), reads<&margin>("slowdown limit - temperature_celsius", static_cast<std::uint64_t>(place)), 1, Tier::fast};
});
inline constexpr auto kSlowdownRows = each(kSensorPlaces, [](int place) {
  return Row{&catalog::temperature_limit, limit_label(place, "slowdown"), fixed(Model::kSensors[place].slowdown), 1, Tier::slow};
});
inline constexpr auto kShutdownRows = each(kSensorPlaces, [](int place) {
  return Row{&catalog::temperature_limit, limit_label(place, "shutdown"), fixed(Model::kSensors[place].shutdown), 1, Tier::slow};
});

inline constexpr auto kClockRows = std::to_array<Row>({
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
    {&catalog::performance_state, {}, reads<&performance_state>("performance_state"), 1, Tier::fast},
});

inline constexpr Part kPeakTeraflops[] = {{"fp64", 34}, {"fp32", 67}, {"tf32", 495}, {"bf16", 990}, {"fp16", 990}, {"fp8", 1980}, {"int8", 1980}};
inline constexpr auto kPeakRows = each(kPeakTeraflops, [](const Part& peak) {
  return Row{&catalog::peak_flops, {"dtype", peak.name, "source", "table"}, fixed(1), peak.amount * kTera, Tier::once};
});

inline constexpr auto kTrafficRows = std::to_array<Row>({
    {&catalog::pcie_link_generation, {}, reads<&link_generation>("link_generation"), 1, Tier::normal},
    {&catalog::pcie_link_lanes, {}, reads<&link_lanes>("link_lanes"), 1, Tier::normal},
    {&catalog::pcie_link_max_generation, {}, fixed(5), 1, Tier::once},
    {&catalog::pcie_link_max_lanes, {}, fixed(16), 1, Tier::once},
    {&catalog::pcie_received_bytes, {}, kBusySeconds, 8 * kGiga, Tier::fast},
    {&catalog::pcie_transmitted_bytes, {}, kBusySeconds, 3 * kGiga, Tier::fast},
    {&catalog::interconnect_received_bytes, {"kind", "nvlink"}, kBusySeconds, 120 * kGiga, Tier::fast},
    {&catalog::interconnect_transmitted_bytes, {"kind", "nvlink"}, kBusySeconds, 120 * kGiga, Tier::fast},
    {&catalog::interconnect_links, {"kind", "nvlink"}, fixed(18), 1, Tier::slow},
    {&catalog::interconnect_links_up, {"kind", "nvlink"}, reads<&links_up>("links_up"), 1, Tier::slow},
});
// clang-format on

}  // namespace gpumeter::simulated
