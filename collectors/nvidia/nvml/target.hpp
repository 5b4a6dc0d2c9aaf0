#pragma once

#include <optional>
#include <tuple>

#include "collectors/nvidia/nvml/caller.hpp"
#include "collectors/nvidia/readers/gpm_sampler.hpp"

namespace gpumeter::nvidia {

/// What a call wants to find in its struct; versioned structs say their version.
template <class Struct>
Struct blank() noexcept {
  return Struct{};
}
template <>
inline nvml::MemoryV2 blank() noexcept {
  return {.version = nvml::version_of<nvml::MemoryV2>(2)};
}
template <>
inline nvml::Temperature blank() noexcept {
  return {.version = nvml::version_of<nvml::Temperature>(1)};  // sensor 0 is the GPU
}
template <>
inline nvml::MarginTemperature blank() noexcept {
  return {.version = nvml::version_of<nvml::MarginTemperature>(1)};
}
template <>
inline nvml::FabricInfoV3 blank() noexcept {
  return {.version = nvml::version_of<nvml::FabricInfoV3>(3)};
}

/// The same as libraries before driver 580 know it: their struct ends before the summary of the health.
struct FabricInfoOfOld : nvml::FabricInfoV3 {};
template <>
inline FabricInfoOfOld blank() noexcept {
  FabricInfoOfOld info{};
  info.version = nvml::version_of<nvml::FabricInfoV2>(2);
  return info;
}

/// What Function(device, &Struct) said in this pass, for the rows that each want a part of it.
template <auto Function, class Struct>
class Answer {
 public:
  void begin_pass() noexcept { is_fresh_ = false; }

  /// Asks once a pass. The struct holds only where status_of(result()) is ok.
  const Struct& ask(NvmlCaller& caller) noexcept {
    if (is_fresh_) return value_;
    value_ = blank<Struct>();
    result_ = caller.call<Function>(&value_);
    is_fresh_ = true;
    return value_;
  }
  unsigned result() const noexcept { return result_; }

 private:
  Struct value_{};
  unsigned result_ = nvml::kNotReady;
  bool is_fresh_ = false;
};

using F = NvmlFunctions;

/// What NVML's calls are about: a GPU, or a MIG instance of one. Lane thread.
struct NvmlTarget {
  NvmlCaller caller;
  GpmSampler gpm;
  std::optional<unsigned> gpu_instance{};  ///< of a MIG instance
  bool has_old_fabric = false;  ///< the library does not know the third layout of the fabric's info
  std::tuple<Answer<&F::nvmlDeviceGetUtilizationRates, nvml::Utilization>,
             Answer<&F::nvmlDeviceGetMemoryInfo_v2, nvml::MemoryV2>,
             Answer<&F::nvmlDeviceGetMemoryInfo, nvml::Memory>,
             Answer<&F::nvmlDeviceGetBAR1MemoryInfo, nvml::Bar1Memory>,
             Answer<&F::nvmlDeviceGetTemperatureV, nvml::Temperature>,
             Answer<&F::nvmlDeviceGetMarginTemperature, nvml::MarginTemperature>,
             Answer<&F::nvmlDeviceGetCurrentClocksEventReasons, std::uint64_t>,
             Answer<&F::nvmlDeviceGetCurrentClocksThrottleReasons, std::uint64_t>,
             Answer<&F::nvmlDeviceGetRowRemapperHistogram, nvml::RowRemapperHistogram>,
             Answer<&F::nvmlDeviceGetGpuFabricInfoV, nvml::FabricInfoV3>,
             Answer<&F::nvmlDeviceGetGpuFabricInfoV, FabricInfoOfOld>,
             Answer<&F::nvmlDeviceGetGridLicensableFeatures_v4, nvml::LicensableFeatures>>
      answers;

  template <auto Function, class Struct>
  Answer<Function, Struct>& answer() noexcept {
    return std::get<Answer<Function, Struct>>(answers);
  }

  void begin_pass() noexcept {
    gpm.begin_pass();
    std::apply([](auto&... each) { (each.begin_pass(), ...); }, answers);
  }

  bool is_lost() const noexcept { return caller.is_lost() || gpm.caller().is_lost(); }
  /// As NvmlCaller::lost_by().
  unsigned lost_by() const noexcept {
    return caller.lost_by() != nvml::kSuccess ? caller.lost_by() : gpm.caller().lost_by();
  }
};

}  // namespace gpumeter::nvidia
