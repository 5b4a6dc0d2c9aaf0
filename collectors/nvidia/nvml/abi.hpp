#pragma once

#include <cstddef>
#include <cstdint>

/// What NVML (libnvidia-ml.so.1, 64-bit Linux) takes and gives, declared from the facts of its ABI as of
/// header version 13.5.37: sizes and offsets are asserted below each struct, and tests/gpu/abi_test.py
/// compares them with a real nvml.h where $NVML_HEADER names one. Enumerations are 4 bytes. No driver, no SDK
/// is needed to build.
namespace gpumeter::nvidia::nvml {

using Device = struct DeviceHandle*;        ///< nvmlDevice_t; of a GPU or of a MIG instance
using EventSet = struct EventSetHandle*;    ///< nvmlEventSet_t
using GpmSample = struct GpmSampleHandle*;  ///< nvmlGpmSample_t

/// The `version` of a versioned struct. GPM's have a plain 1.
template <class Struct>
constexpr unsigned version_of(unsigned version) noexcept {
  return static_cast<unsigned>(sizeof(Struct)) | (version << 24);
}

struct PciInfo {  // nvmlPciInfo_t, of nvmlDeviceGetPciInfo_v3
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];  ///< "00000000:1B:00.0"
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, domain) == 16 && offsetof(PciInfo, bus_id) == 36);

struct Utilization {  // nvmlUtilization_t, percent
  unsigned gpu, memory;
};
static_assert(sizeof(Utilization) == 8);

struct Memory {  // nvmlMemory_t, bytes
  std::uint64_t total, free, used;
};
static_assert(sizeof(Memory) == 24);

struct MemoryV2 {  // nvmlMemory_v2_t, bytes; `used` does not count what is reserved (seen in nvidia-smi's own
                   // sums)
  unsigned version;
  std::uint64_t total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, total) == 8 && offsetof(MemoryV2, used) == 32);

struct Bar1Memory {  // nvmlBAR1Memory_t, bytes
  std::uint64_t total, free, used;
};
static_assert(sizeof(Bar1Memory) == 24);

union Value {  // nvmlValue_t; a ValueType says which
  double as_double;
  int as_int;
  unsigned as_uint;
  std::uint64_t as_ulong;
  std::int64_t as_longlong;
  std::uint16_t as_ushort;
};
static_assert(sizeof(Value) == 8);

enum class ValueType : unsigned {
  real,
  uint,
  ulong,
  ulonglong,
  longlong,
  sint,
  ushort,
};

struct FieldValue {  // nvmlFieldValue_t
  unsigned field, scope;
  std::int64_t timestamp;     ///< microseconds since 1970
  std::int64_t latency_usec;  ///< what the driver took for it
  ValueType type;
  unsigned result;  ///< an error code of its own
  Value value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, timestamp) == 8 &&
              offsetof(FieldValue, type) == 24 && offsetof(FieldValue, result) == 28 &&
              offsetof(FieldValue, value) == 32);

struct BufferSample {       // nvmlSample_t
  std::uint64_t timestamp;  ///< microseconds, the driver's clock
  Value value;
};
static_assert(sizeof(BufferSample) == 16);

struct ProcessInfo {  // nvmlProcessInfo_v2_t, of the lists' ..._v3
  unsigned pid;
  std::uint64_t used_memory;  ///< bytes; kValueNotAvailable: not told
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24 && offsetof(ProcessInfo, used_memory) == 8 &&
              offsetof(ProcessInfo, gpu_instance) == 16);

/// What the lists' ..._v3 write in some drivers of the time of headers 12.2 and 12.3, under the same names:
/// process_stride.hpp. Its layout has stayed as nvmlProcessDetail_v1_t.
struct WideProcessInfo {
  unsigned pid;
  std::uint64_t used_memory;
  unsigned gpu_instance, compute_instance;
  std::uint64_t protected_memory;
};
static_assert(sizeof(WideProcessInfo) == 32 && offsetof(WideProcessInfo, protected_memory) == 24);

struct ProcessUtilization {  // nvmlProcessUtilizationSample_t, percent
  unsigned pid;
  std::uint64_t timestamp;  ///< microseconds, the driver's clock
  unsigned sm, memory, encoder, decoder;
};
static_assert(sizeof(ProcessUtilization) == 32 && offsetof(ProcessUtilization, timestamp) == 8 &&
              offsetof(ProcessUtilization, sm) == 16);

struct ProcessUtilizationInfo {  // nvmlProcessUtilizationInfo_v1_t, percent
  std::uint64_t timestamp;       ///< microseconds, the driver's clock
  unsigned pid, sm, memory, encoder, decoder, jpeg, ofa;
};
static_assert(sizeof(ProcessUtilizationInfo) == 40 && offsetof(ProcessUtilizationInfo, pid) == 8 &&
              offsetof(ProcessUtilizationInfo, sm) == 12);

struct ProcessesUtilization {  // nvmlProcessesUtilizationInfo_v1_t
  unsigned version, count;
  std::uint64_t last_seen;
  ProcessUtilizationInfo* samples;
};
static_assert(sizeof(ProcessesUtilization) == 24 && offsetof(ProcessesUtilization, last_seen) == 8 &&
              offsetof(ProcessesUtilization, samples) == 16);

struct EventData {  // nvmlEventData_t
  Device device;
  std::uint64_t type, data;  ///< data: the XID of a critical error
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(EventData) == 32 && offsetof(EventData, gpu_instance) == 24);

struct GpmMetric {  // nvmlGpmMetric_t
  unsigned id, result;
  double value;
  const char *short_name, *long_name, *unit;
};
static_assert(sizeof(GpmMetric) == 40 && offsetof(GpmMetric, value) == 8);

/// nvmlGpmMetricsGet_t. The array grew from 98 to 477 elements with the version still 1: libraries read the
/// first `count`.
struct GpmMetricsGet {
  static constexpr std::size_t kMost = 477;
  unsigned version, count;
  GpmSample first, second;
  GpmMetric metrics[kMost];
};
static_assert(sizeof(GpmMetricsGet) == 19104 && offsetof(GpmMetricsGet, first) == 8 &&
              offsetof(GpmMetricsGet, metrics) == 24);

struct GpmSupport {  // nvmlGpmSupport_t
  unsigned version, is_supported;
};
static_assert(sizeof(GpmSupport) == 8);

struct RowRemapperHistogram {  // nvmlRowRemapperHistogramValues_t: banks by spare rows left
  unsigned max, high, partial, low, none;
};
static_assert(sizeof(RowRemapperHistogram) == 20);

struct Temperature {  // nvmlTemperature_v1_t
  unsigned version, sensor;
  int celsius;
};
static_assert(sizeof(Temperature) == 12);

struct MarginTemperature {  // nvmlMarginTemperature_v1_t
  unsigned version;
  int celsius;
};
static_assert(sizeof(MarginTemperature) == 8);

struct FabricInfoV2 {  // nvmlGpuFabricInfo_v2_t
  unsigned version;
  unsigned char cluster_uuid[16];
  unsigned status, clique;
  unsigned char state;
  unsigned health_mask;
};
static_assert(sizeof(FabricInfoV2) == 36 && offsetof(FabricInfoV2, state) == 28 &&
              offsetof(FabricInfoV2, health_mask) == 32);

struct FabricInfoV3 {  // nvmlGpuFabricInfo_v3_t
  unsigned version;
  unsigned char cluster_uuid[16];
  unsigned status, clique;
  unsigned char state;
  unsigned health_mask;
  unsigned char health_summary;
};
static_assert(sizeof(FabricInfoV3) == 40 && offsetof(FabricInfoV3, health_summary) == 36);

struct DeviceAttributes {  // nvmlDeviceAttributes_t, of a MIG instance
  unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices;
  std::uint64_t memory_mib;
};
static_assert(sizeof(DeviceAttributes) == 40 && offsetof(DeviceAttributes, memory_mib) == 32);

struct FanSpeed {  // nvmlFanSpeedInfo_v1_t
  unsigned version, fan, rpm;
};
static_assert(sizeof(FanSpeed) == 12);

struct ConfidentialState {  // nvmlConfComputeSystemState_t
  unsigned environment, feature, devtools;
};
static_assert(sizeof(ConfidentialState) == 12);

struct LicensableFeature {  // nvmlGridLicensableFeature_t
  unsigned code, state;
  char license_info[128], product[128];
  unsigned enabled;
  unsigned expiry_year;
  std::uint16_t expiry_month, expiry_day, expiry_hour, expiry_minute, expiry_second;
  std::uint8_t expiry_status;
};
static_assert(sizeof(LicensableFeature) == 284 && offsetof(LicensableFeature, enabled) == 264 &&
              offsetof(LicensableFeature, expiry_status) == 282);

struct LicensableFeatures {  // nvmlGridLicensableFeatures_t, of ..._v4
  int is_supported;
  unsigned count;
  LicensableFeature features[3];
};
static_assert(sizeof(LicensableFeatures) == 860);

}  // namespace gpumeter::nvidia::nvml
