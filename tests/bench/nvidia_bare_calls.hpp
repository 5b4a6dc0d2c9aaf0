#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "collectors/nvidia/nvml/session.hpp"

/// The driver calls of a fast pass over an H100, and nothing else.
namespace gpumeter::nvidia {

class BareCalls {
 public:
  explicit BareCalls(const char* library) : session_(*NvmlSession::shared(library)) {
    unsigned count = 0;
    nvml().nvmlDeviceGetCount_v2(&count);
    gpus_.resize(count);
    for (unsigned i = 0; i < count; ++i) {
      Gpu& gpu = gpus_[i];
      nvml().nvmlDeviceGetHandleByIndex_v2(i, &gpu.device);
      for (nvml::GpmSample& sample : gpu.gpm) nvml().nvmlGpmSampleAlloc(&sample);
      nvml().nvmlGpmSampleGet(gpu.device, gpu.gpm[1]);
      for (std::size_t field = 0; field < gpu.fields.size(); ++field) {
        gpu.fields[field].field = kFields[field];
        gpu.fields[field].scope = kFields[field] == 138 || kFields[field] == 139 ? nvml::kAllLinks : 0;
      }
    }
    metrics_.version = 1;
    for (const unsigned id : kMetrics) metrics_.metrics[metrics_.count++].id = id;
  }
  ~BareCalls() {
    for (Gpu& gpu : gpus_) {
      for (nvml::GpmSample sample : gpu.gpm) nvml().nvmlGpmSampleFree(sample);
    }
  }
  BareCalls(const BareCalls&) = delete;
  BareCalls& operator=(const BareCalls&) = delete;

  void fast_pass() {
    for (Gpu& gpu : gpus_) {
      for (std::size_t i = 0; i < std::size(kBuffers); ++i) drain(gpu, i);
      nvml::Utilization utilization{};
      nvml().nvmlDeviceGetUtilizationRates(gpu.device, &utilization);
      nvml().nvmlGpmSampleGet(gpu.device, gpu.gpm[0]);
      std::swap(gpu.gpm[0], gpu.gpm[1]);
      metrics_.first = gpu.gpm[0];
      metrics_.second = gpu.gpm[1];
      nvml().nvmlGpmMetricsGet(&metrics_);
      nvml().nvmlDeviceGetFieldValues(gpu.device, static_cast<int>(gpu.fields.size()), gpu.fields.data());
      std::uint64_t reasons = 0;
      nvml().nvmlDeviceGetCurrentClocksEventReasons(gpu.device, &reasons);
      nvml::Temperature temperature{.version = nvml::version_of<nvml::Temperature>(1)};
      nvml().nvmlDeviceGetTemperatureV(gpu.device, &temperature);
      nvml::MarginTemperature margin{.version = nvml::version_of<nvml::MarginTemperature>(1)};
      nvml().nvmlDeviceGetMarginTemperature(gpu.device, &margin);
      for (unsigned clock = 0; clock < 4; ++clock) {
        unsigned megahertz = 0;
        nvml().nvmlDeviceGetClockInfo(gpu.device, clock, &megahertz);
      }
    }
  }

 private:
  // The same buffers as in collectors/nvidia/metrics.cpp.
  static constexpr unsigned kBuffers[] = {nvml::kGpuSamples, nvml::kMemorySamples, nvml::kPowerSamples};
  static constexpr unsigned kFields[] = {74,  271, 269, 270, 76, 77,  79,  74, 271, 269,
                                         270, 76,  77,  79,  83, 185, 186, 82, 138, 139};
  static constexpr unsigned kMetrics[] = {1, 2, 3, 5, 11, 12, 13, 4, 6, 7, 9, 10, 20, 21};

  struct Gpu {
    nvml::Device device = nullptr;
    std::array<nvml::GpmSample, 2> gpm{};
    std::array<nvml::FieldValue, std::size(kFields)> fields{};
    std::array<std::uint64_t, std::size(kBuffers)> seen{};
  };

  void drain(Gpu& gpu, std::size_t which) {
    auto count = static_cast<unsigned>(room_.size());
    nvml::ValueType type{};
    if (nvml().nvmlDeviceGetSamples(gpu.device, kBuffers[which], gpu.seen[which], &type, &count,
                                    room_.data()) == 0 &&
        count > 0)
      gpu.seen[which] = room_[count - 1].timestamp;
  }

  const NvmlFunctions& nvml() const { return session_->functions(); }

  std::shared_ptr<NvmlSession> session_;
  std::vector<Gpu> gpus_;
  nvml::GpmMetricsGet metrics_{};
  std::array<nvml::BufferSample, 128> room_{};
};

}  // namespace gpumeter::nvidia
