#pragma once

#include "collectors/nvidia/readers/basic.hpp"

/// How the GPU fares: temperatures against their limits, memory errors, links, licence, events.
namespace gpumeter::nvidia {

namespace readers {

Handle bind_tlimit(NvidiaContext& context, const ReadSource& source);
Sample read_tlimit(NvidiaContext& context, int handle) noexcept;
Sample read_margin(NvidiaContext& context, int handle) noexcept;

Handle bind_ecc(NvidiaContext& context, const ReadSource& source);
Handle bind_ecc_part(NvidiaContext& context, const ReadSource& source);
Sample read_ecc(NvidiaContext& context, int handle) noexcept;

Handle bind_fan(NvidiaContext& context, const ReadSource& source);
Sample read_fan(NvidiaContext& context, int handle) noexcept;
Handle bind_fan_rpm(NvidiaContext& context, const ReadSource& source);
Sample read_fan_rpm(NvidiaContext& context, int handle) noexcept;

Sample read_license(NvidiaContext& context, int handle) noexcept;
Handle bind_confidential(NvidiaContext& context, const ReadSource& source);
Sample read_confidential(NvidiaContext& context, int handle) noexcept;

Handle bind_xid(NvidiaContext& context, const ReadSource& source);
Sample read_xid(NvidiaContext& context, int handle) noexcept;
Sample read_xid_time(NvidiaContext& context, int handle) noexcept;
Handle bind_instance_xid(NvidiaContext& context, const ReadSource& source);
Sample read_instance_xid(NvidiaContext& context, int handle) noexcept;
Handle bind_event(NvidiaContext& context, const ReadSource& source);
Sample read_event(NvidiaContext& context, int handle) noexcept;

}  // namespace readers

/// The absolute limit behind a T.Limit: these fields say at which margin something happens, and the margin is
/// that of the temperature now. Both are whole degrees and read one after the other, so a change of one
/// degree is no change of the limit.
constexpr NvidiaReader tlimit(std::string_view name, unsigned field) noexcept {
  return {readers::bind_tlimit, readers::read_tlimit, {name, field}};
}

/// The lower of slowdown and highest operating temperature, minus the temperature.
constexpr NvidiaReader margin(std::string_view name) noexcept {
  return {readers::bind_probed<readers::read_margin>, readers::read_margin, {name}};
}

/// ECC errors by type, kind of counter and nvmlMemoryLocation_t.
constexpr std::uint64_t ecc_argument(unsigned type, unsigned counter, unsigned location) noexcept {
  return type | counter << 8 | location << 16;
}
constexpr NvidiaReader ecc(std::string_view name, unsigned type, unsigned counter,
                           unsigned location) noexcept {
  return {readers::bind_ecc, readers::read_ecc, {name, ecc_argument(type, counter, location)}};
}
/// The same of a part of what newer chips count as SRAM: nothing where the chip counts SRAM as a whole.
constexpr NvidiaReader ecc_part(std::string_view name, unsigned type, unsigned counter,
                                unsigned location) noexcept {
  return {readers::bind_ecc_part, readers::read_ecc, {name, ecc_argument(type, counter, location)}};
}

// What the event thread has counted: nothing where the driver does not tell of such events. `place`: of
// kXidNames, kEventNames.

constexpr NvidiaReader xid_count(std::size_t place) noexcept {
  return {readers::bind_xid, readers::read_xid, {"nvmlEventSetWait_v2 XID", place}};
}
/// When it was counted last, in Unix time; 0: never.
constexpr NvidiaReader xid_time(std::size_t place) noexcept {
  return {readers::bind_xid, readers::read_xid_time, {"nvmlEventSetWait_v2 XID", place}};
}
/// Of a MIG instance; `place`: of kInstanceXidNames.
constexpr NvidiaReader instance_xid_count(std::size_t place) noexcept {
  return {readers::bind_instance_xid, readers::read_instance_xid, {"nvmlEventSetWait_v2 XID", place}};
}
constexpr NvidiaReader event_count(std::size_t place) noexcept {
  return {readers::bind_event, readers::read_event, {"nvmlEventSetWait_v2", place}};
}

/// 1 while that holds of the vGPU licence, or of the machine's confidential computing.
constexpr NvidiaReader licensed(bool holds) noexcept {
  return {readers::bind_probed<readers::read_license>,
          readers::read_license,
          {"nvmlDeviceGetGridLicensableFeatures_v4", holds}};
}
constexpr NvidiaReader confidential(bool holds) noexcept {
  return {readers::bind_confidential, readers::read_confidential, {"nvmlSystemGetConfComputeState", holds}};
}

}  // namespace gpumeter::nvidia
