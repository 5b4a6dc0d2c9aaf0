#pragma once

#include "collectors/nvidia/readers/basic.hpp"

/// The GPU's health: temperatures and their limits, fans, memory errors, licence, events; and its peak rates.
namespace gpumeter::nvidia {

namespace readers {

Reader bind_tlimit(NvidiaContext& context, const ReadSource& source);
Reader bind_margin(NvidiaContext& context, const ReadSource& source);
Reader bind_ecc(NvidiaContext& context, const ReadSource& source);
Reader bind_ecc_part(NvidiaContext& context, const ReadSource& source);
Reader bind_fan(NvidiaContext& context, const ReadSource& source);
Reader bind_fan_rpm(NvidiaContext& context, const ReadSource& source);
Reader bind_license(NvidiaContext& context, const ReadSource& source);
Reader bind_confidential(NvidiaContext& context, const ReadSource& source);
Reader bind_multi_gpu(NvidiaContext& context, const ReadSource& source);
Reader bind_xid(NvidiaContext& context, const ReadSource& source);
Reader bind_xid_time(NvidiaContext& context, const ReadSource& source);
Reader bind_instance_xid(NvidiaContext& context, const ReadSource& source);
Reader bind_event(NvidiaContext& context, const ReadSource& source);
Reader bind_peak(NvidiaContext& context, const ReadSource& source);
Reader bind_peak_bandwidth(NvidiaContext& context, const ReadSource& source);
Reader bind_unified_memory(NvidiaContext& context, const ReadSource& source);

}  // namespace readers

/// The absolute limit behind a T.Limit: the field holds the margin at which an action starts, and the call
/// returns the present margin. Both are whole degrees and are read one after the other, so a change of one
/// degree does not change the limit.
constexpr NvidiaSource tlimit(std::string_view name, unsigned field) noexcept {
  return {readers::bind_tlimit, {name, field}};
}

/// The lower of the slowdown and maximum operating temperatures, minus the present temperature.
constexpr NvidiaSource margin(std::string_view name) noexcept { return {readers::bind_margin, {name}}; }

/// The `place`th fan.
constexpr NvidiaSource fan(std::size_t place) noexcept {
  return on_card<readers::bind_fan>("nvmlDeviceGetFanSpeed_v2", place);
}
constexpr NvidiaSource fan_rpm(std::size_t place) noexcept {
  return on_card<readers::bind_fan_rpm>("nvmlDeviceGetFanSpeedRPM", place);
}

/// A part of the host's memory, if it is the GPU's too.
enum class MemoryPart : std::uint8_t { size, used, free };
constexpr NvidiaSource unified_memory(std::string_view name, MemoryPart part) noexcept {
  return {readers::bind_unified_memory, {name, static_cast<std::uint64_t>(part)}};
}

/// ECC errors by type, kind of counter and nvmlMemoryLocation_t; of the GPU or of a MIG instance.
constexpr std::uint64_t ecc_argument(unsigned type, unsigned counter, unsigned location) noexcept {
  return type | counter << 8 | location << 16;
}
constexpr NvidiaSource ecc(std::string_view name, unsigned type, unsigned counter,
                           unsigned location) noexcept {
  return {readers::bind_ecc, {name, ecc_argument(type, counter, location)}};
}
/// The same for a part of the memory that newer chips count as SRAM: not bound if the chip counts SRAM as a
/// whole.
constexpr NvidiaSource ecc_part(std::string_view name, unsigned type, unsigned counter,
                                unsigned location) noexcept {
  return {readers::bind_ecc_part, {name, ecc_argument(type, counter, location)}};
}

// Counts of the event thread: not bound if the driver does not report such events. `place` is an index into
// kXidNames or kEvents.

constexpr NvidiaSource xid_count(std::size_t place) noexcept {
  return {readers::bind_xid, {"nvmlEventSetWait_v2 XID", place}};
}
/// Time of the last count, in Unix time; 0: never.
constexpr NvidiaSource xid_time(std::size_t place) noexcept {
  return {readers::bind_xid_time, {"nvmlEventSetWait_v2 XID", place}};
}
/// Counts of a MIG instance; `place` is an index into kInstanceXidNames.
constexpr NvidiaSource instance_xid_count(std::size_t place) noexcept {
  return {readers::bind_instance_xid, {"nvmlEventSetWait_v2 XID", place}};
}
constexpr NvidiaSource event_count(std::size_t place) noexcept {
  return {readers::bind_event, {"nvmlEventSetWait_v2", place}};
}

/// 1 while the vGPU licence, or the machine's confidential computing, is in this state.
constexpr NvidiaSource licensed(bool holds) noexcept {
  return {readers::bind_license, {"nvmlDeviceGetGridLicensableFeatures_v4", holds}};
}
constexpr NvidiaSource confidential(bool holds) noexcept {
  return {readers::bind_confidential, {"nvmlSystemGetConfComputeSettings", holds}};
}

/// 1 while the protection of several confidential GPUs is in this mode.
constexpr NvidiaSource multi_gpu(nvml::MultiGpuMode holds) noexcept {
  return {readers::bind_multi_gpu, {"nvmlSystemGetConfComputeSettings multiGpuMode", holds}};
}

/// The data types of gpu_peak_flops.
inline constexpr std::string_view kDtypes[] = {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"};

/// The peak of kDtypes[dtype], from the table or from the formula.
constexpr NvidiaSource peak(unsigned dtype, bool from_table) noexcept {
  return {readers::bind_peak,
          {from_table ? "peaks: table" : "peaks: formula", dtype | std::uint64_t{from_table} << 32}};
}
constexpr NvidiaSource peak_bandwidth() noexcept {
  return {readers::bind_peak_bandwidth, {"peaks: memory bandwidth"}};
}

}  // namespace gpumeter::nvidia
