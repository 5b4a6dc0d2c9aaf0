#pragma once

#include "collectors/nvidia/readers/basic.hpp"

/// The GPU's activity: the driver's sample buffers, its performance metrics, and the reasons for throttling.
namespace gpumeter::nvidia {

namespace readers {

Reader bind_sampled_total(NvidiaContext& context, const ReadSource& source);
Reader bind_sampled_max(NvidiaContext& context, const ReadSource& source);
Reader bind_sampled_min(NvidiaContext& context, const ReadSource& source);
Reader bind_gpm(NvidiaContext& context, const ReadSource& source);
Reader bind_gpm_mean(NvidiaContext& context, const ReadSource& source);
Reader bind_gpm_total(NvidiaContext& context, const ReadSource& source);
Reader bind_gpm_cycles(NvidiaContext& context, const ReadSource& source);
Reader bind_reasons(NvidiaContext& context, const ReadSource& source);
Reader bind_throttle_time(NvidiaContext& context, const ReadSource& source);

}  // namespace readers

/// The integral of a sample buffer, drained each pass, and its highest and lowest sample of the last minute.
constexpr NvidiaSource sampled(std::string_view name, nvml::SamplingType type) noexcept {
  return {readers::bind_sampled_total, {name, type}};
}
constexpr NvidiaSource sampled_max(std::string_view name, nvml::SamplingType type) noexcept {
  return {readers::bind_sampled_max, {name, type}};
}
constexpr NvidiaSource sampled_min(std::string_view name, nvml::SamplingType type) noexcept {
  return {readers::bind_sampled_min, {name, type}};
}

/// A performance metric: a percentage or rate since the previous pass, or a count.
constexpr NvidiaSource gpm(std::string_view name, unsigned metric) noexcept {
  return {readers::bind_gpm, {name, metric}};
}

/// The mean of `count` adjacent metrics, over those that the device has: one for each engine of a kind.
constexpr NvidiaSource gpm_mean(std::string_view name, unsigned first, unsigned count) noexcept {
  return {readers::bind_gpm_mean, {name, std::uint64_t{count} << 32 | first}};
}

/// A rate's integral over observed time.
constexpr NvidiaSource gpm_total(std::string_view name, unsigned metric) noexcept {
  return {readers::bind_gpm_total, {name, metric}};
}

/// The same for links whose number the field `link_count` holds: the driver reports a rate of 0 also on a GPU
/// without such links (seen on an H100 without NVLink).
constexpr NvidiaSource gpm_link_total(std::string_view name, unsigned metric, unsigned link_count) noexcept {
  return {readers::bind_gpm_total, {name, std::uint64_t{link_count} << 32 | metric}};
}

/// Seconds of activity: active cycles divided by all cycles of the SMs (metric 248). Both counters run on in
/// hardware, so nothing between two passes is missed.
constexpr NvidiaSource gpm_cycles(std::string_view name, unsigned active) noexcept {
  return {readers::bind_gpm_cycles, {name, active}};
}

/// 1 while any reason of the mask (nvml::EventReason) is active; not bound if the GPU has none of them.
constexpr NvidiaSource reasons(std::string_view name, std::uint64_t mask) noexcept {
  return {readers::bind_reasons, {name, mask}};
}

/// Seconds of throttling from the hardware's counters: one field, or two fields with the same cause. The sum
/// of two fields never exceeds the elapsed time.
constexpr NvidiaSource throttle_time(std::string_view name, unsigned field, unsigned second = 0) noexcept {
  return {readers::bind_throttle_time, {name, std::uint64_t{second} << 16 | field}};
}

}  // namespace gpumeter::nvidia
