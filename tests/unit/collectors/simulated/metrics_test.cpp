#include <gtest/gtest.h>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "collectors/api/catalog.hpp"
#include "collectors/simulated/collector.hpp"
#include "tests/unit/collectors/simulated/bench.hpp"

namespace gpumeter::simulated {
namespace {

// "gpu_mode{mode,state} 17": family, names of its labels, number of series.
std::string shape_of(std::span<const SeriesSpec> series) {
  std::map<std::string, int> shapes;
  for (const SeriesSpec& one : series) {
    if (one.family == &catalog::meter_source_info) continue;  // comes from the table itself
    std::string labels;
    for (const Label& label : one.labels) labels += (labels.empty() ? "" : ",") + label.name;
    ++shapes[std::string(one.family->name) + '{' + labels + '}'];
  }
  std::string text;
  for (const auto& [shape, count] : shapes) text += shape + ' ' + std::to_string(count) + '\n';
  return text;
}

// Every device family of a data-centre GPU. The daemon adds gpu_up, gpu_info and the observed time.
constexpr const char* kShape = R"(gpu_busy_seconds_total{} 1
gpu_clock_hertz{clock} 4
gpu_clock_max_hertz{clock} 4
gpu_compute_active_ratio{} 1
gpu_compute_active_seconds_total{} 1
gpu_compute_occupancy_ratio{} 1
gpu_compute_occupancy_seconds_total{} 1
gpu_energy_joules_total{} 1
gpu_engine_busy_seconds_total{engine} 7
gpu_engine_utilization_ratio{engine} 7
gpu_events_total{event} 5
gpu_fabric_health{state} 3
gpu_fabric_state{state} 5
gpu_fan_speed_ratio{fan} 2
gpu_fan_speed_rpm{fan} 2
gpu_hardware_errors_total{block,severity} 4
gpu_interconnect_errors_total{kind,error} 3
gpu_interconnect_links_up{kind} 1
gpu_interconnect_links{kind} 1
gpu_interconnect_received_bytes_total{kind} 1
gpu_interconnect_transmitted_bytes_total{kind} 1
gpu_license_state{state} 2
gpu_memory_bandwidth_utilization_ratio{} 1
gpu_memory_bandwidth_utilization_seconds_total{} 1
gpu_memory_controller_busy_seconds_total{} 1
gpu_memory_controller_utilization_ratio{} 1
gpu_memory_errors_total{severity,location} 6
gpu_memory_free_bytes{memory} 2
gpu_memory_lifetime_errors_total{severity,location} 6
gpu_memory_reserved_bytes{memory} 1
gpu_memory_size_bytes{memory} 2
gpu_memory_unrepairable{} 1
gpu_memory_used_bytes{memory} 2
gpu_mode{mode,state} 17
gpu_pcie_errors_total{severity,kind} 5
gpu_pcie_link_generation{} 1
gpu_pcie_link_lanes{} 1
gpu_pcie_link_max_generation{} 1
gpu_pcie_link_max_lanes{} 1
gpu_pcie_received_bytes_total{} 1
gpu_pcie_replays_total{} 1
gpu_pcie_transmitted_bytes_total{} 1
gpu_peak_flops{dtype,source} 7
gpu_peak_memory_bandwidth_bytes_per_second{} 1
gpu_performance_state{} 1
gpu_pipe_active_ratio{pipe} 5
gpu_pipe_active_seconds_total{pipe} 5
gpu_power_instant_watts{} 1
gpu_power_limit_watts{limit} 4
gpu_power_max_watts{window} 1
gpu_power_min_watts{window} 1
gpu_power_rail_watts{rail} 2
gpu_power_watts{} 1
gpu_rail_energy_joules_total{rail} 2
gpu_recovery_action{action} 5
gpu_remapped_rows{cause} 2
gpu_repair_pending{part} 2
gpu_retired_pages_pending{} 1
gpu_retired_pages{cause} 2
gpu_row_remap_banks{availability} 5
gpu_row_remap_failed{} 1
gpu_row_remap_pending{} 1
gpu_suspended{} 1
gpu_temperature_celsius{sensor} 3
gpu_temperature_limit_celsius{sensor,limit} 6
gpu_temperature_margin_celsius{sensor} 3
gpu_tensor_active_ratio{kind} 3
gpu_tensor_active_seconds_total{kind} 3
gpu_tensor_peak_seconds_total{} 1
gpu_throttle_reason_active{cause,reason} 11
gpu_throttle_reason_seconds_total{cause,reason} 11
gpu_throttle_seconds_total{cause} 7
gpu_throttled{cause} 7
gpu_utilization_max_ratio{window} 1
gpu_utilization_min_ratio{window} 1
gpu_utilization_ratio{} 1
gpu_voltage_volts{rail} 1
gpu_xid_errors_total{xid} 28
gpu_xid_last_timestamp_seconds{xid} 28
)";

TEST(SimulatedMetrics, HasEveryFamilyOfADataCentreGpu) {
  const Bench bench;
  EXPECT_EQ(shape_of(bench.device->series()), kShape);
  EXPECT_GE(bench.device->series().size(), 100U);
}

TEST(SimulatedMetrics, EverySeriesHasAValueFromTheStartButTheTimeOfAnErrorThatNeverWas) {
  Bench bench;
  bench.pass_all();
  const std::vector<std::string> missing = bench.missing();
  EXPECT_EQ(missing.size(), 28U);
  for (const std::string& name : missing) EXPECT_TRUE(name.starts_with("gpu_xid_last_timestamp_seconds "));
}

}  // namespace
}  // namespace gpumeter::simulated
