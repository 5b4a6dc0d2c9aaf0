#pragma once

#include <cstddef>
#include <cstdint>

/// The functions of NVML that gpumeter calls (libnvidia-ml.so.1, 64-bit Linux), with their parameters and
/// structs. They are declared from the facts of the ABI as of header version 13.5.37, so the build needs no
/// driver and no SDK. A new call is added in this file alone: its struct, whose `version` selects the layout,
/// and its line X(name, arguments). Sizes and offsets are asserted below each struct. tests/gpu/abi_test.py
/// compares them with a real nvml.h if $NVML_HEADER names one. Enumerations are 4 bytes.
///
/// The exported name is exact: in many cases the name without its version suffix is an older ABI
/// (nvmlDeviceGetPciInfo). Each function returns a Return (constants.hpp).
namespace gpumeter::nvidia::nvml {

using Device = struct DeviceHandle*;            ///< nvmlDevice_t; of a GPU or of a MIG instance
using GpuInstance = struct GpuInstanceHandle*;  ///< nvmlGpuInstance_t
using EventSet = struct EventSetHandle*;        ///< nvmlEventSet_t
using GpmSample = struct GpmSampleHandle*;      ///< nvmlGpmSample_t

/// The `version` of a versioned struct. Structs of GPM use a plain 1.
template <class Struct>
constexpr unsigned version_of(unsigned version) noexcept {
  return static_cast<unsigned>(sizeof(Struct)) | (version << 24);
}

union Value {  // nvmlValue_t; a ValueType selects the member
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

/// Without these functions nothing is read.
#define GPUMETER_NVML_REQUIRED(X)                             \
  X(nvmlInit_v2, (void))                                      \
  X(nvmlShutdown, (void))                                     \
  X(nvmlDeviceGetCount_v2, (unsigned*))                       \
  X(nvmlDeviceGetHandleByIndex_v2, (unsigned, nvml::Device*)) \
  X(nvmlDeviceGetUUID, (nvml::Device, char*, unsigned))

// The remaining functions are null if the library lacks them.

// Identity.

struct PciInfo {  // nvmlPciInfo_t, of nvmlDeviceGetPciInfo_v3
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];  ///< "00000000:1B:00.0"
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, domain) == 16 && offsetof(PciInfo, bus_id) == 36);

struct ConfidentialState {  // nvmlConfComputeSystemState_t
  unsigned environment, feature, devtools;
};
static_assert(sizeof(ConfidentialState) == 12);

struct ConfidentialSettings {  // nvmlSystemConfComputeSettings_v1_t
  unsigned version = version_of<ConfidentialSettings>(1);
  unsigned environment, feature, devtools, multi_gpu;
};
static_assert(sizeof(ConfidentialSettings) == 20 && offsetof(ConfidentialSettings, multi_gpu) == 16);

struct PlatformInfo {  // nvmlPlatformInfo_v2_t
  unsigned version = version_of<PlatformInfo>(2);
  unsigned char ib_guid[16];
  unsigned char chassis_serial[16];  ///< text, not always ended by a zero
  unsigned char slot, tray, host, peer_type, module;
};
static_assert(sizeof(PlatformInfo) == 44 && offsetof(PlatformInfo, chassis_serial) == 20 &&
              offsetof(PlatformInfo, slot) == 36 && offsetof(PlatformInfo, module) == 40);

struct PciInfoExt {  // nvmlPciInfoExt_v1_t
  unsigned version = version_of<PciInfoExt>(1);
  unsigned domain, bus, device, device_id, subsystem_id, base_class, sub_class;
  char bus_id[32];
};
static_assert(sizeof(PciInfoExt) == 64 && offsetof(PciInfoExt, base_class) == 24);

struct Pdi {  // nvmlPdi_v1_t
  unsigned version = version_of<Pdi>(1);
  std::uint64_t value;
};
static_assert(sizeof(Pdi) == 16 && offsetof(Pdi, value) == 8);

struct AddressingMode {  // nvmlDeviceAddressingMode_v1_t
  unsigned version = version_of<AddressingMode>(1);
  unsigned mode;
};
static_assert(sizeof(AddressingMode) == 8);

struct Capabilities {  // nvmlDeviceCapabilities_v1_t
  unsigned version = version_of<Capabilities>(1);
  unsigned mask;
};
static_assert(sizeof(Capabilities) == 8);

struct C2cMode {  // nvmlC2cModeInfo_v1_t
  unsigned is_enabled;
};
static_assert(sizeof(C2cMode) == 4);

#define GPUMETER_NVML_INVENTORY(X)                                          \
  X(nvmlSystemGetCudaDriverVersion, (int*))                                 \
  X(nvmlDeviceGetBrand, (nvml::Device, unsigned*))                          \
  X(nvmlDeviceGetBoardId, (nvml::Device, unsigned*))                        \
  X(nvmlDeviceGetMultiGpuBoard, (nvml::Device, unsigned*))                  \
  X(nvmlDeviceGetBoardPartNumber, (nvml::Device, char*, unsigned))          \
  X(nvmlDeviceGetInforomImageVersion, (nvml::Device, char*, unsigned))      \
  X(nvmlDeviceGetInforomVersion, (nvml::Device, unsigned, char*, unsigned)) \
  X(nvmlDeviceGetPciInfoExt, (nvml::Device, nvml::PciInfoExt*))             \
  X(nvmlDeviceGetGpuMaxPcieLinkGeneration, (nvml::Device, unsigned*))       \
  X(nvmlDeviceGetPdi, (nvml::Device, nvml::Pdi*))                           \
  X(nvmlDeviceGetAccountingMode, (nvml::Device, unsigned*))                 \
  X(nvmlDeviceGetAddressingMode, (nvml::Device, nvml::AddressingMode*))     \
  X(nvmlDeviceGetC2cModeInfoV, (nvml::Device, nvml::C2cMode*))              \
  X(nvmlDeviceGetCapabilities, (nvml::Device, nvml::Capabilities*))         \
  X(nvmlDeviceGetMaxCustomerBoostClock, (nvml::Device, unsigned, unsigned*))

#define GPUMETER_NVML_IDENTITY(X)                                    \
  X(nvmlSystemGetDriverVersion, (char*, unsigned))                   \
  X(nvmlSystemGetConfComputeState, (nvml::ConfidentialState*))       \
  X(nvmlSystemGetConfComputeSettings, (nvml::ConfidentialSettings*)) \
  X(nvmlDeviceGetHandleByUUID, (const char*, nvml::Device*))         \
  X(nvmlDeviceGetName, (nvml::Device, char*, unsigned))              \
  X(nvmlDeviceGetPciInfo_v3, (nvml::Device, nvml::PciInfo*))         \
  X(nvmlDeviceGetSerial, (nvml::Device, char*, unsigned))            \
  X(nvmlDeviceGetVbiosVersion, (nvml::Device, char*, unsigned))      \
  X(nvmlDeviceGetGspFirmwareVersion, (nvml::Device, char*))          \
  X(nvmlDeviceGetMinorNumber, (nvml::Device, unsigned*))             \
  X(nvmlDeviceGetArchitecture, (nvml::Device, unsigned*))            \
  X(nvmlDeviceGetCudaComputeCapability, (nvml::Device, int*, int*))  \
  X(nvmlDeviceGetNumGpuCores, (nvml::Device, unsigned*))             \
  X(nvmlDeviceGetMemoryBusWidth, (nvml::Device, unsigned*))          \
  X(nvmlDeviceGetNumaNodeId, (nvml::Device, unsigned*))              \
  X(nvmlDeviceGetModuleId, (nvml::Device, unsigned*))                \
  X(nvmlDeviceGetPlatformInfo, (nvml::Device, nvml::PlatformInfo*))  \
  X(nvmlDeviceGetVirtualizationMode, (nvml::Device, unsigned*))      \
  X(nvmlDeviceGetPersistenceMode, (nvml::Device, unsigned*))         \
  X(nvmlDeviceGetEccMode, (nvml::Device, unsigned*, unsigned*))      \
  X(nvmlDeviceGetMigMode, (nvml::Device, unsigned*, unsigned*))      \
  X(nvmlDeviceGetComputeMode, (nvml::Device, unsigned*))             \
  X(nvmlDeviceGetDisplayActive, (nvml::Device, unsigned*))

// Utilization and memory.

struct Utilization {  // nvmlUtilization_t, percent
  unsigned gpu, memory;
};
static_assert(sizeof(Utilization) == 8);

struct BufferSample {       // nvmlSample_t
  std::uint64_t timestamp;  ///< microseconds, the driver's clock
  Value value;
};
static_assert(sizeof(BufferSample) == 16);

struct Memory {  // nvmlMemory_t, bytes
  std::uint64_t total, free, used;
};
static_assert(sizeof(Memory) == 24);

/// `used` does not include `reserved` (as the sums of nvidia-smi show).
struct MemoryV2 {  // nvmlMemory_v2_t, bytes
  unsigned version = version_of<MemoryV2>(2);
  std::uint64_t total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, total) == 8 && offsetof(MemoryV2, used) == 32);

struct Bar1Memory {  // nvmlBAR1Memory_t, bytes
  std::uint64_t total, free, used;
};
static_assert(sizeof(Bar1Memory) == 24);

struct CaptureStats {  // nvmlFBCStats_t, of frame buffer capture
  unsigned sessions, frames_per_second, latency_usec;
};
static_assert(sizeof(CaptureStats) == 12);

#define GPUMETER_NVML_ACTIVITY(X)                                                              \
  X(nvmlDeviceGetUtilizationRates, (nvml::Device, nvml::Utilization*))                         \
  X(nvmlDeviceGetEncoderUtilization, (nvml::Device, unsigned*, unsigned*))                     \
  X(nvmlDeviceGetDecoderUtilization, (nvml::Device, unsigned*, unsigned*))                     \
  X(nvmlDeviceGetJpgUtilization, (nvml::Device, unsigned*, unsigned*))                         \
  X(nvmlDeviceGetOfaUtilization, (nvml::Device, unsigned*, unsigned*))                         \
  X(nvmlDeviceGetSamples,                                                                      \
    (nvml::Device, unsigned, std::uint64_t, nvml::ValueType*, unsigned*, nvml::BufferSample*)) \
  X(nvmlDeviceGetMemoryInfo_v2, (nvml::Device, nvml::MemoryV2*))                               \
  X(nvmlDeviceGetMemoryInfo, (nvml::Device, nvml::Memory*))                                    \
  X(nvmlDeviceGetBAR1MemoryInfo, (nvml::Device, nvml::Bar1Memory*))                            \
  X(nvmlDeviceGetConfComputeProtectedMemoryUsage, (nvml::Device, nvml::Memory*))               \
  X(nvmlDeviceGetEncoderStats, (nvml::Device, unsigned*, unsigned*, unsigned*))                \
  X(nvmlDeviceGetFBCStats, (nvml::Device, nvml::CaptureStats*))

// Power, temperatures, clocks, fans.

struct Temperature {  // nvmlTemperature_v1_t
  unsigned version = version_of<Temperature>(1);
  unsigned sensor;
  int celsius;
};
static_assert(sizeof(Temperature) == 12);

struct MarginTemperature {  // nvmlMarginTemperature_v1_t
  unsigned version = version_of<MarginTemperature>(1);
  int celsius;
};
static_assert(sizeof(MarginTemperature) == 8);

struct FanSpeed {  // nvmlFanSpeedInfo_v1_t
  unsigned version = version_of<FanSpeed>(1);
  unsigned fan, rpm;
};
static_assert(sizeof(FanSpeed) == 12);

#define GPUMETER_NVML_SENSORS(X)                                                        \
  X(nvmlDeviceGetPowerUsage, (nvml::Device, unsigned*))                                 \
  X(nvmlDeviceGetTotalEnergyConsumption, (nvml::Device, std::uint64_t*))                \
  X(nvmlDeviceGetEnforcedPowerLimit, (nvml::Device, unsigned*))                         \
  X(nvmlDeviceGetPowerManagementDefaultLimit, (nvml::Device, unsigned*))                \
  X(nvmlDeviceGetPowerManagementLimitConstraints, (nvml::Device, unsigned*, unsigned*)) \
  X(nvmlDeviceGetTemperatureV, (nvml::Device, nvml::Temperature*))                      \
  X(nvmlDeviceGetTemperature, (nvml::Device, unsigned, unsigned*))                      \
  X(nvmlDeviceGetTemperatureThreshold, (nvml::Device, unsigned, unsigned*))             \
  X(nvmlDeviceGetMarginTemperature, (nvml::Device, nvml::MarginTemperature*))           \
  X(nvmlDeviceGetClockInfo, (nvml::Device, unsigned, unsigned*))                        \
  X(nvmlDeviceGetMaxClockInfo, (nvml::Device, unsigned, unsigned*))                     \
  X(nvmlDeviceGetPerformanceState, (nvml::Device, unsigned*))                           \
  X(nvmlDeviceGetCurrentClocksEventReasons, (nvml::Device, std::uint64_t*))             \
  X(nvmlDeviceGetCurrentClocksThrottleReasons, (nvml::Device, std::uint64_t*))          \
  X(nvmlDeviceGetSupportedClocksEventReasons, (nvml::Device, std::uint64_t*))           \
  X(nvmlDeviceGetSupportedClocksThrottleReasons, (nvml::Device, std::uint64_t*))        \
  X(nvmlDeviceGetNumFans, (nvml::Device, unsigned*))                                    \
  X(nvmlDeviceGetFanSpeed, (nvml::Device, unsigned*))                                   \
  X(nvmlDeviceGetFanSpeed_v2, (nvml::Device, unsigned, unsigned*))                      \
  X(nvmlDeviceGetFanSpeedRPM, (nvml::Device, nvml::FanSpeed*))

// Field values, memory errors, links, licence.

struct FieldValue {  // nvmlFieldValue_t
  unsigned field, scope;
  std::int64_t timestamp;     ///< microseconds since 1970
  std::int64_t latency_usec;  ///< time that the driver spent on the field
  ValueType type;
  unsigned result;  ///< an error code of its own
  Value value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, timestamp) == 8 &&
              offsetof(FieldValue, type) == 24 && offsetof(FieldValue, result) == 28 &&
              offsetof(FieldValue, value) == 32);

struct RowRemapperHistogram {  // nvmlRowRemapperHistogramValues_t: banks by spare rows left
  unsigned max, high, partial, low, none;
};
static_assert(sizeof(RowRemapperHistogram) == 20);

struct RepairStatus {  // nvmlRepairStatus_v1_t
  unsigned version = version_of<RepairStatus>(1);
  unsigned channel_pending, tpc_pending;
};
static_assert(sizeof(RepairStatus) == 12);

struct SramErrors {  // nvmlEccSramErrorStatus_v1_t: the buckets are uncorrected errors since the card was
                     // made
  unsigned version = version_of<SramErrors>(1);
  std::uint64_t lifetime_parity, lifetime_sec_ded, lifetime_corrected;
  std::uint64_t parity, sec_ded, corrected;
  std::uint64_t l2, sm, pcie, microcontroller, other;
  unsigned is_above_threshold;
};
static_assert(sizeof(SramErrors) == 104 && offsetof(SramErrors, lifetime_parity) == 8 &&
              offsetof(SramErrors, l2) == 56 && offsetof(SramErrors, is_above_threshold) == 96);

struct UnrepairableMemory {  // nvmlUnrepairableMemoryStatus_v1_t
  unsigned is_unrepairable;
};
static_assert(sizeof(UnrepairableMemory) == 4);

struct BankRemapperStatus {   // nvmlEccBankRemapperStatus_v1_t: Rubin and later
  unsigned active, inactive;  ///< remappings
  unsigned is_pending;
  unsigned max, none;  ///< groups of banks with all and with no spare banks left
};
static_assert(sizeof(BankRemapperStatus) == 20 && offsetof(BankRemapperStatus, max) == 12);

struct FabricInfoV2 {  // nvmlGpuFabricInfo_v2_t
  unsigned version = version_of<FabricInfoV2>(2);
  unsigned char cluster_uuid[16];
  unsigned status, clique;
  unsigned char state;
  unsigned health_mask;
};
static_assert(sizeof(FabricInfoV2) == 36 && offsetof(FabricInfoV2, state) == 28 &&
              offsetof(FabricInfoV2, health_mask) == 32);

/// Libraries before driver 580 reject this version. Their struct ends before the health summary.
struct FabricInfoV3 {  // nvmlGpuFabricInfo_v3_t
  static constexpr unsigned kFormerVersion = version_of<FabricInfoV2>(2);
  unsigned version = version_of<FabricInfoV3>(3);
  unsigned char cluster_uuid[16];
  unsigned status, clique;
  unsigned char state;
  unsigned health_mask;
  unsigned char health_summary;
};
static_assert(sizeof(FabricInfoV3) == 40 && offsetof(FabricInfoV3, health_summary) == 36);

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

#define GPUMETER_NVML_HEALTH(X)                                                                    \
  X(nvmlDeviceGetFieldValues, (nvml::Device, int, nvml::FieldValue*))                              \
  X(nvmlDeviceGetMemoryErrorCounter, (nvml::Device, unsigned, unsigned, unsigned, std::uint64_t*)) \
  X(nvmlDeviceGetRowRemapperHistogram, (nvml::Device, nvml::RowRemapperHistogram*))                \
  X(nvmlDeviceGetBankRemapperStatus_v1, (nvml::Device, nvml::BankRemapperStatus*))                 \
  X(nvmlDeviceGetRepairStatus, (nvml::Device, nvml::RepairStatus*))                                \
  X(nvmlDeviceGetUnrepairableMemoryFlag_v1, (nvml::Device, nvml::UnrepairableMemory*))             \
  X(nvmlDeviceGetSramEccErrorStatus, (nvml::Device, nvml::SramErrors*))                            \
  X(nvmlDeviceGetPcieReplayCounter, (nvml::Device, unsigned*))                                     \
  X(nvmlDeviceGetCurrPcieLinkGeneration, (nvml::Device, unsigned*))                                \
  X(nvmlDeviceGetCurrPcieLinkWidth, (nvml::Device, unsigned*))                                     \
  X(nvmlDeviceGetMaxPcieLinkGeneration, (nvml::Device, unsigned*))                                 \
  X(nvmlDeviceGetMaxPcieLinkWidth, (nvml::Device, unsigned*))                                      \
  X(nvmlDeviceGetNvLinkState, (nvml::Device, unsigned, unsigned*))                                 \
  X(nvmlDeviceGetNvLinkRemoteDeviceType, (nvml::Device, unsigned, unsigned*))                      \
  X(nvmlDeviceGetNvLinkRemotePciInfo_v2, (nvml::Device, unsigned, nvml::PciInfo*))                 \
  X(nvmlDeviceGetNvLinkErrorCounter, (nvml::Device, unsigned, unsigned, std::uint64_t*))           \
  X(nvmlDeviceGetGpuFabricInfoV, (nvml::Device, nvml::FabricInfoV3*))                              \
  X(nvmlDeviceGetGridLicensableFeatures_v4, (nvml::Device, nvml::LicensableFeatures*))

// MIG instances and processes.

struct DeviceAttributes {  // nvmlDeviceAttributes_t, of a MIG instance
  unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices;
  std::uint64_t memory_mib;
};
static_assert(sizeof(DeviceAttributes) == 40 && offsetof(DeviceAttributes, memory_mib) == 32);

struct ProcessInfo {  // nvmlProcessInfo_v2_t, of the lists' ..._v3
  unsigned pid;
  std::uint64_t used_memory;  ///< bytes; kValueNotAvailable: unknown
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24 && offsetof(ProcessInfo, used_memory) == 8 &&
              offsetof(ProcessInfo, gpu_instance) == 16);

/// The entry that the lists' ..._v3 functions write in some drivers of the period of headers 12.2 and 12.3,
/// under the same names: see by_driver.hpp. The layout lives on as nvmlProcessDetail_v1_t.
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
  unsigned version = version_of<ProcessesUtilization>(1);
  unsigned count;
  std::uint64_t last_seen;
  ProcessUtilizationInfo* samples;
};
static_assert(sizeof(ProcessesUtilization) == 24 && offsetof(ProcessesUtilization, last_seen) == 8 &&
              offsetof(ProcessesUtilization, samples) == 16);

struct GpuInstanceInfo {  // nvmlGpuInstanceInfo_t
  Device device;
  unsigned id, profile_id;
  unsigned placement_start, placement_size;  ///< memory slices
};
static_assert(sizeof(GpuInstanceInfo) == 24 && offsetof(GpuInstanceInfo, placement_start) == 16);

#define GPUMETER_NVML_PROCESSES(X)                                                      \
  X(nvmlDeviceGetMaxMigDeviceCount, (nvml::Device, unsigned*))                          \
  X(nvmlDeviceGetMigDeviceHandleByIndex, (nvml::Device, unsigned, nvml::Device*))       \
  X(nvmlDeviceGetGpuInstanceId, (nvml::Device, unsigned*))                              \
  X(nvmlDeviceGetComputeInstanceId, (nvml::Device, unsigned*))                          \
  X(nvmlDeviceGetGpuInstanceById, (nvml::Device, unsigned, nvml::GpuInstance*))         \
  X(nvmlGpuInstanceGetInfo, (nvml::GpuInstance, nvml::GpuInstanceInfo*))                \
  X(nvmlDeviceGetAttributes_v2, (nvml::Device, nvml::DeviceAttributes*))                \
  X(nvmlDeviceGetComputeRunningProcesses_v3, (nvml::Device, unsigned*, void*))          \
  X(nvmlDeviceGetGraphicsRunningProcesses_v3, (nvml::Device, unsigned*, void*))         \
  X(nvmlDeviceGetMPSComputeRunningProcesses_v3, (nvml::Device, unsigned*, void*))       \
  X(nvmlDeviceGetProcessesUtilizationInfo, (nvml::Device, nvml::ProcessesUtilization*)) \
  X(nvmlDeviceGetProcessUtilization, (nvml::Device, nvml::ProcessUtilization*, unsigned*, std::uint64_t))

// Virtual GPUs of a host.

using Vgpu = unsigned;  ///< nvmlVgpuInstance_t

struct VgpuUtilization {    // nvmlVgpuInstanceUtilizationInfo_v1_t, percent
  std::uint64_t timestamp;  ///< microseconds, the driver's clock
  Vgpu vgpu;
  Value sm, memory, encoder, decoder, jpeg, ofa;
};
static_assert(sizeof(VgpuUtilization) == 64 && offsetof(VgpuUtilization, vgpu) == 8 &&
              offsetof(VgpuUtilization, sm) == 16);

struct VgpusUtilization {  // nvmlVgpuInstancesUtilizationInfo_v1_t
  unsigned version = version_of<VgpusUtilization>(1);
  ValueType type;  ///< of the samples' values
  unsigned count;
  std::uint64_t last_seen;
  VgpuUtilization* samples;
};
static_assert(sizeof(VgpusUtilization) == 32 && offsetof(VgpusUtilization, last_seen) == 16 &&
              offsetof(VgpusUtilization, samples) == 24);

struct FormerVgpuUtilization {  // nvmlVgpuInstanceUtilizationSample_t, percent
  Vgpu vgpu;
  std::uint64_t timestamp;
  Value sm, memory, encoder, decoder;
};
static_assert(sizeof(FormerVgpuUtilization) == 48 && offsetof(FormerVgpuUtilization, timestamp) == 8 &&
              offsetof(FormerVgpuUtilization, sm) == 16);

#define GPUMETER_NVML_VGPUS(X)                                                          \
  X(nvmlDeviceGetActiveVgpus, (nvml::Device, unsigned*, nvml::Vgpu*))                   \
  X(nvmlVgpuInstanceGetVmID, (nvml::Vgpu, char*, unsigned, unsigned*))                  \
  X(nvmlVgpuInstanceGetFbUsage, (nvml::Vgpu, std::uint64_t*))                           \
  X(nvmlDeviceGetVgpuInstancesUtilizationInfo, (nvml::Device, nvml::VgpusUtilization*)) \
  X(nvmlDeviceGetVgpuUtilization,                                                       \
    (nvml::Device, std::uint64_t, nvml::ValueType*, unsigned*, nvml::FormerVgpuUtilization*))

// Events.

struct EventData {  // nvmlEventData_t
  Device device;
  std::uint64_t type, data;  ///< data: the XID of a critical error
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(EventData) == 32 && offsetof(EventData, gpu_instance) == 24);

/// These structs have no version: the caller zeroes them.
struct OperationalEventConfig {  // nvmlGpuOperationalEventConfig_v1_t
  char uuid[96];                 ///< "GPU-...", ended by a zero
  unsigned min_log_level, min_severity;
};
static_assert(sizeof(OperationalEventConfig) == 104 && offsetof(OperationalEventConfig, min_log_level) == 96);

/// An event bit or an operational event (EventDataType).
struct SetEvent {       // nvmlEventSetWait_v3_t
  unsigned timeout_ms;  ///< in
  unsigned data_type;
  char uuid[96];           ///< of the GPU; empty if unavailable
  char source_module[16];  ///< "GPU-RAS", not always ended by a zero
  std::uint64_t type, data;
  std::uint64_t group_cursor, instance_id, timestamp_usec, trace_id;
  unsigned gpu_instance, compute_instance;
  unsigned severity;  ///< OperationalSeverity, or a newer number
  unsigned category, module_event_code, scope, originator, module_instance, chiplet;
  unsigned log_level;
  unsigned attributes;
  unsigned group_cper_size;
  unsigned group_attributes;
  unsigned char group_size, group_index;
};
static_assert(sizeof(SetEvent) == 224 && offsetof(SetEvent, source_module) == 104 &&
              offsetof(SetEvent, type) == 120 && offsetof(SetEvent, trace_id) == 160 &&
              offsetof(SetEvent, severity) == 176 && offsetof(SetEvent, log_level) == 204 &&
              offsetof(SetEvent, group_attributes) == 216 && offsetof(SetEvent, group_index) == 221);

struct EventContextCount {  // nvmlEventSetGetContextCount_v1_t
  unsigned count;
};
static_assert(sizeof(EventContextCount) == 4);

struct EventLegacyXid {  // nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1_t
  unsigned index, xid;   ///< index of the context, in; its XID, out
};
static_assert(sizeof(EventLegacyXid) == 8);

#define GPUMETER_NVML_EVENTS(X)                                                                         \
  X(nvmlEventSetCreate, (nvml::EventSet*))                                                              \
  X(nvmlDeviceGetSupportedEventTypes, (nvml::Device, std::uint64_t*))                                   \
  X(nvmlDeviceRegisterEvents, (nvml::Device, std::uint64_t, nvml::EventSet))                            \
  X(nvmlEventSetWait_v2, (nvml::EventSet, nvml::EventData*, unsigned))                                  \
  X(nvmlEventSetFree, (nvml::EventSet))                                                                 \
  X(nvmlEventSetRegisterGpuOperationalEvents_v1, (nvml::EventSet, const nvml::OperationalEventConfig*)) \
  X(nvmlEventSetWait_v3, (nvml::EventSet, nvml::SetEvent*))                                             \
  X(nvmlEventSetGetContextCount_v1, (nvml::EventSet, nvml::EventContextCount*))                         \
  X(nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1, (nvml::EventSet, nvml::EventLegacyXid*))

// GPU performance metrics.

struct GpmSupport {  // nvmlGpmSupport_t
  unsigned version = 1;
  unsigned is_supported;
};
static_assert(sizeof(GpmSupport) == 8);

struct GpmMetric {  // nvmlGpmMetric_t
  unsigned id, result;
  double value;
  const char *short_name, *long_name, *unit;
};
static_assert(sizeof(GpmMetric) == 40 && offsetof(GpmMetric, value) == 8);

/// nvmlGpmMetricsGet_t. The array grew from 98 to 477 elements while the version stayed 1; libraries read the
/// first `count`.
struct GpmMetricsGet {
  static constexpr std::size_t kMost = 477;
  unsigned version = 1;
  unsigned count;
  GpmSample first, second;
  GpmMetric metrics[kMost];
};
static_assert(sizeof(GpmMetricsGet) == 19104 && offsetof(GpmMetricsGet, first) == 8 &&
              offsetof(GpmMetricsGet, metrics) == 24);

#define GPUMETER_NVML_GPM(X)                                        \
  X(nvmlGpmQueryDeviceSupport, (nvml::Device, nvml::GpmSupport*))   \
  X(nvmlGpmSampleAlloc, (nvml::GpmSample*))                         \
  X(nvmlGpmSampleFree, (nvml::GpmSample))                           \
  X(nvmlGpmSampleGet, (nvml::Device, nvml::GpmSample))              \
  X(nvmlGpmMigSampleGet, (nvml::Device, unsigned, nvml::GpmSample)) \
  X(nvmlGpmMetricsGet, (nvml::GpmMetricsGet*))

#define GPUMETER_NVML_OPTIONAL(X) \
  GPUMETER_NVML_INVENTORY(X)      \
  GPUMETER_NVML_IDENTITY(X)       \
  GPUMETER_NVML_ACTIVITY(X)       \
  GPUMETER_NVML_SENSORS(X)        \
  GPUMETER_NVML_HEALTH(X)         \
  GPUMETER_NVML_PROCESSES(X) GPUMETER_NVML_VGPUS(X) GPUMETER_NVML_EVENTS(X) GPUMETER_NVML_GPM(X)

}  // namespace gpumeter::nvidia::nvml

namespace gpumeter::nvidia {

/// The library's entry points.
struct NvmlFunctions {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declarator and a parameter list take none
#define GPUMETER_NVML_MEMBER(name, arguments) unsigned(*name) arguments = nullptr;
  GPUMETER_NVML_REQUIRED(GPUMETER_NVML_MEMBER)
  GPUMETER_NVML_OPTIONAL(GPUMETER_NVML_MEMBER)
#undef GPUMETER_NVML_MEMBER
};
using F = NvmlFunctions;

}  // namespace gpumeter::nvidia
