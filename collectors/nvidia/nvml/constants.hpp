#pragma once

#include <cstdint>

/// NVML's constants as of header version 13.5.37, under NVML's names.
namespace gpumeter::nvidia::nvml {

enum Return : unsigned {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kLibraryNotFound = 12,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kOperatingSystem = 17,
  kLibRmVersionMismatch = 18,
  kMemory = 20,
  kNoData = 21,
  kArgumentVersionMismatch = 25,
  kDeprecated = 26,
  kNotReady = 27,
  kGpuNotFound = 28,
  kInvalidState = 29,
  kUnknown = 999,
};

enum Architecture : unsigned {
  kKepler = 2,
  kMaxwell,
  kPascal,
  kVolta,
  kTuring,
  kAmpere,
  kAda,
  kHopper,
  kBlackwell,
  kRubin = 13,
};

enum ClockType : unsigned { kClockGraphics, kClockSm, kClockMemory, kClockVideo };

enum TemperatureThreshold : unsigned {
  kThresholdShutdown,
  kThresholdSlowdown,
  kThresholdMemoryMax,
  kThresholdGpuMax,
  kThresholdAcousticCurrent = 5,  ///< nvidia-smi: "GPU Target Temperature"
};

enum SamplingType : unsigned {
  kPowerSamples = 0,
  kGpuSamples = 1,
  kMemorySamples = 2,
};

enum EccErrorType : unsigned { kCorrected, kUncorrected };
enum EccCounterType : unsigned { kVolatile, kAggregate };

/// Bits of nvmlDeviceGetCurrentClocksEventReasons.
enum EventReason : std::uint64_t {
  kReasonGpuIdle = 0x1,
  kReasonApplicationsClocks = 0x2,
  kReasonSwPowerCap = 0x4,
  kReasonHwSlowdown = 0x8,
  kReasonSyncBoost = 0x10,
  kReasonSwThermal = 0x20,
  kReasonHwThermal = 0x40,
  kReasonHwPowerBrake = 0x80,
  kReasonDisplayClocks = 0x100,
  kReasonBoardLimit = 0x200,
  kReasonReliability = 0x400,
};

/// nvmlGpuFabricInfo_t.state when registration has ended, with or without success.
inline constexpr unsigned kFabricCompleted = 3;

/// nvmlSystemConfComputeSettings_t.multiGpuMode.
enum MultiGpuMode : unsigned { kMultiGpuNone, kMultiGpuProtectedPcie, kMultiGpuNvle };

/// Values of nvmlDeviceGetAddressingMode.
enum AddressSpace : unsigned { kAddressingModeNone, kAddressingModeHmm, kAddressingModeAts };

/// Bit of nvmlDeviceGetCapabilities: extended GPU memory.
inline constexpr unsigned kCapabilityEgm = 1;  // NVML_DEV_CAP_EGM

/// Parts of the inforom with versions of their own.
enum InforomObject : unsigned { kInforomOem, kInforomEcc, kInforomPower };

/// nvmlDeviceGetVirtualizationMode of a GPU that its host divides among virtual machines.
inline constexpr unsigned kHostVgpu = 3;  // NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU

/// Bits of nvmlDeviceRegisterEvents.
enum EventType : std::uint64_t {
  kEventSingleBitEcc = 0x1,
  kEventDoubleBitEcc = 0x2,
  kEventXid = 0x8,
  kEventMigConfigChange = 0x100,
  kEventEccStorm = 0x200,
  kEventDramRetirement = 0x400,
  kEventDramRetirementFailure = 0x800,
  kEventPoisonNonFatal = 0x1000,
  kEventPoisonFatal = 0x2000,
  kEventGpuUnavailable = 0x4000,
  kEventRecoveryAction = 0x8000,
};

/// nvmlEventSetWait_v3_t.dataType of an operational event.
inline constexpr unsigned kOperationalEvent = 1;  // NVML_EVENT_DATA_TYPE_GPU_OPERATIONAL_EVENT

/// nvmlEventSetWait_v3_t.severity; newer drivers may have more.
enum OperationalSeverity : unsigned {
  kSeverityInformational = 10,
  kSeverityCorrected = 20,
  kSeverityRecoverable = 30,
  kSeverityFatal = 40,
};
/// Lower levels, telemetry and diagnostics, have a high volume.
inline constexpr unsigned kNoticeLevel = 30;  // NVML_GPU_OPERATIONAL_EVENT_LOG_LEVEL_NOTICE

/// Bits of nvmlEventSetWait_v3_t.attributes and .groupAttributes.
inline constexpr unsigned kEventOverflow = 64;  // NVML_OPERATIONAL_EVENT_ATTR_OVERFLOW
inline constexpr unsigned kGroupSimulated = 4;  // NVML_OPERATIONAL_EVENT_GROUP_ATTR_SIMULATED

/// No instance: nvmlEventData_t.gpuInstanceId of an event of the whole GPU.
inline constexpr unsigned kNoInstance = 0xFFFFFFFF;

/// Marks a value that the driver does not have: NVML_VALUE_NOT_AVAILABLE, as 64 bits.
inline constexpr std::uint64_t kValueNotAvailable = ~std::uint64_t{0};

/// scopeId of NVLink fields: all links together.
inline constexpr unsigned kAllLinks = 0xFFFFFFFF;
/// The links of which NVML's performance metrics have series; NVML_NVLINK_MAX_LINKS is 36 in header 13.5.37.
inline constexpr unsigned kMostLinks = 72;
/// NVML_FI_DEV_NVLINK_GET_STATE, NVML_NVLINK_STATE_*. The last is not up.
inline constexpr unsigned kLinkActive = 1, kLinkSleeps = 2, kLinkHasNoTraffic = 3;
/// nvmlIntNvLinkDeviceType_t, NVML_NVLINK_DEVICE_TYPE_*.
enum LinkEnd : unsigned { kLinkToGpu, kLinkToIbmNpu, kLinkToSwitch };
inline constexpr unsigned kMostC2cLinks =
    14;  ///< the links of NVML_GPM_METRIC_C2C_LINK13_TOTAL_TX_PER_SEC and before

}  // namespace gpumeter::nvidia::nvml
