#pragma once

#include <optional>
#include <string>
#include <vector>

#include "programs/top/snapshot.hpp"

/// A small machine as a daemon reports it: GPU 0 works for a Slurm job, GPU 1 is hot, GPU 2 is lost.
namespace gpumeter::top {

inline std::string gpu_series(const char* name, int gpu, const std::string& more, double value) {
  const std::string index = std::to_string(gpu);
  return std::string("{\"name\":\"") + name + "\",\"labels\":{\"gpu\":\"" + index + "\",\"uuid\":\"GPU-" +
         index + "\",\"model\":\"NVIDIA H100 80GB\"" + more + "},\"value\":" + std::to_string(value) +
         ",\"age_seconds\":0.5},\n";
}

inline std::string run_series(const char* name, const std::string& more, double value) {
  return std::string("{\"name\":\"") + name + R"(","labels":{"run":"llama","user":"alice")" + more +
         "},\"value\":" + std::to_string(value) + ",\"age_seconds\":0.25},\n";
}

inline std::string gpu_document(int gpu, double busy, double celsius) {
  return gpu_series("gpu_up", gpu, "", 1) + gpu_series("gpu_utilization_ratio", gpu, "", busy) +
         gpu_series("gpu_power_watts", gpu, "", 100 + 300 * busy) +
         gpu_series("gpu_power_limit_watts", gpu, R"(,"limit":"enforced")", 450) +
         gpu_series("gpu_power_limit_watts", gpu, R"(,"limit":"max")", 700) +
         gpu_series("gpu_memory_used_bytes", gpu, R"(,"memory":"vram")", 40.0 * 1073741824) +
         gpu_series("gpu_memory_size_bytes", gpu, R"(,"memory":"vram")", 80.0 * 1073741824) +
         gpu_series("gpu_memory_used_bytes", gpu, R"(,"memory":"bar1")", 7) +
         gpu_series("gpu_temperature_celsius", gpu, R"(,"sensor":"core")", celsius) +
         gpu_series("gpu_temperature_margin_celsius", gpu, R"(,"sensor":"core")", 90 - celsius) +
         gpu_series("gpu_temperature_margin_celsius", gpu, R"(,"sensor":"memory")", 95 - celsius) +
         gpu_series("gpu_throttled", gpu, R"(,"cause":"power")", busy > 0.5 ? 1 : 0) +
         gpu_series("gpu_throttled", gpu, R"(,"cause":"thermal")", celsius > 85 ? 1 : 0) +
         gpu_series("gpu_throttle_seconds_total", gpu, R"(,"cause":"thermal")", celsius > 85 ? 75 : 0);
}

inline std::string machine_series() {
  std::string text =
      "{\"series\":[\n" + gpu_document(0, 0.87, 65) + gpu_document(1, 0, 88) +
      gpu_series("gpu_up", 2, "", 0) +
      gpu_series("gpu_workload_share_ratio", 0, R"(,"kind":"slurm_job","workload":"4711")", 0.75) +
      gpu_series("gpu_workload_memory_used_bytes", 0, R"(,"kind":"slurm_job","workload":"4711")",
                 30.0 * 1073741824) +
      gpu_series("gpu_workload_share_ratio", 0, R"(,"kind":"other","workload":"x")", 0.25) +
      gpu_series("gpu_workload_share_ratio", 1, R"(,"kind":"unattributed","workload":"unattributed")", 1) +
      R"({"name":"gpu_workload_info","labels":{"kind":"slurm_job","workload":"4711","user":"alice"},"value":1},)" +
      run_series("ml_step", "", 1200) + run_series("ml_steps_total", R"(,"split":"train")", 1200) +
      run_series("ml_run_time_seconds", "", 300) + run_series("ml_loss", R"(,"split":"train")", 2.4628) +
      run_series("ml_phase_seconds_total", R"(,"phase":"data_loading")", 60) +
      run_series("ml_run_gpu_info", R"(,"gpu":"0","uuid":"GPU-0","source":"process")", 1);
  return text + R"({"name":"gpumeter_build_info","labels":{"version":"1.2.3"},"value":1}]})";
}

inline std::string machine_health() {
  return R"({"devices":[{"gpu":"0","uuid":"GPU-0","state":"ok","since_seconds":500,"reasons":[]},
{"gpu":"1","uuid":"GPU-1","state":"degraded","since_seconds":75,"reasons":[{"reason":"thermal_throttling","severity":"degraded",
"action":"none","text":"Slowed down by heat","since_seconds":75,"alert":"GpuThermalThrottling","runbook":"x"}]},
{"gpu":"2","uuid":"GPU-2","model":"NVIDIA H100 80GB","state":"failed","since_seconds":12,"reasons":[{"reason":"device_lost",
"severity":"failed","action":"reboot","text":"The GPU is lost","since_seconds":12,"alert":"GpuLost","runbook":"x"}]}],
"machine":[],"state":"failed"})";
}

inline Snapshot machine(bool is_judged = true, Charset charset = Charset::ascii) {
  std::optional<Health> health;
  if (is_judged) health = *parse_health(machine_health(), charset);
  return make_snapshot(*parse_series(machine_series(), charset), health);
}

}  // namespace gpumeter::top
