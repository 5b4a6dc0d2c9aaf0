#pragma once

#include "collectors/nvidia/nvml/abi.hpp"

/// NVML's functions that are used, by exact exported name: X(name, arguments). The raw name without a version
/// suffix is an old ABI in many cases (nvmlDeviceGetPciInfo), so the suffix is part of the name here. All
/// return a Return (nvml_constants.hpp) but nvmlErrorString.

/// Without these nothing is read at all.
#define GPUMETER_NVML_REQUIRED(X)                             \
  X(nvmlInit_v2, (void))                                      \
  X(nvmlShutdown, (void))                                     \
  X(nvmlDeviceGetCount_v2, (unsigned*))                       \
  X(nvmlDeviceGetHandleByIndex_v2, (unsigned, nvml::Device*)) \
  X(nvmlDeviceGetUUID, (nvml::Device, char*, unsigned))

/// Null where the library lacks it.
#define GPUMETER_NVML_OPTIONAL(X)                                                                         \
  X(nvmlSystemGetDriverVersion, (char*, unsigned))                                                        \
  X(nvmlSystemGetConfComputeState, (nvml::ConfidentialState*))                                            \
  X(nvmlDeviceGetName, (nvml::Device, char*, unsigned))                                                   \
  X(nvmlDeviceGetPciInfo_v3, (nvml::Device, nvml::PciInfo*))                                              \
  X(nvmlDeviceGetSerial, (nvml::Device, char*, unsigned))                                                 \
  X(nvmlDeviceGetVbiosVersion, (nvml::Device, char*, unsigned))                                           \
  X(nvmlDeviceGetGspFirmwareVersion, (nvml::Device, char*))                                               \
  X(nvmlDeviceGetMinorNumber, (nvml::Device, unsigned*))                                                  \
  X(nvmlDeviceGetArchitecture, (nvml::Device, unsigned*))                                                 \
  X(nvmlDeviceGetCudaComputeCapability, (nvml::Device, int*, int*))                                       \
  X(nvmlDeviceGetNumGpuCores, (nvml::Device, unsigned*))                                                  \
  X(nvmlDeviceGetMemoryBusWidth, (nvml::Device, unsigned*))                                               \
  X(nvmlDeviceGetNumaNodeId, (nvml::Device, unsigned*))                                                   \
  X(nvmlDeviceGetPersistenceMode, (nvml::Device, unsigned*))                                              \
  X(nvmlDeviceGetEccMode, (nvml::Device, unsigned*, unsigned*))                                           \
  X(nvmlDeviceGetMigMode, (nvml::Device, unsigned*, unsigned*))                                           \
  X(nvmlDeviceGetComputeMode, (nvml::Device, unsigned*))                                                  \
  X(nvmlDeviceGetDisplayActive, (nvml::Device, unsigned*))                                                \
  X(nvmlDeviceGetUtilizationRates, (nvml::Device, nvml::Utilization*))                                    \
  X(nvmlDeviceGetEncoderUtilization, (nvml::Device, unsigned*, unsigned*))                                \
  X(nvmlDeviceGetDecoderUtilization, (nvml::Device, unsigned*, unsigned*))                                \
  X(nvmlDeviceGetJpgUtilization, (nvml::Device, unsigned*, unsigned*))                                    \
  X(nvmlDeviceGetOfaUtilization, (nvml::Device, unsigned*, unsigned*))                                    \
  X(nvmlDeviceGetSamples,                                                                                 \
    (nvml::Device, unsigned, std::uint64_t, nvml::ValueType*, unsigned*, nvml::BufferSample*))            \
  X(nvmlDeviceGetMemoryInfo_v2, (nvml::Device, nvml::MemoryV2*))                                          \
  X(nvmlDeviceGetMemoryInfo, (nvml::Device, nvml::Memory*))                                               \
  X(nvmlDeviceGetBAR1MemoryInfo, (nvml::Device, nvml::Bar1Memory*))                                       \
  X(nvmlDeviceGetPowerUsage, (nvml::Device, unsigned*))                                                   \
  X(nvmlDeviceGetTotalEnergyConsumption, (nvml::Device, std::uint64_t*))                                  \
  X(nvmlDeviceGetEnforcedPowerLimit, (nvml::Device, unsigned*))                                           \
  X(nvmlDeviceGetPowerManagementDefaultLimit, (nvml::Device, unsigned*))                                  \
  X(nvmlDeviceGetPowerManagementLimitConstraints, (nvml::Device, unsigned*, unsigned*))                   \
  X(nvmlDeviceGetTemperatureV, (nvml::Device, nvml::Temperature*))                                        \
  X(nvmlDeviceGetTemperature, (nvml::Device, unsigned, unsigned*))                                        \
  X(nvmlDeviceGetTemperatureThreshold, (nvml::Device, unsigned, unsigned*))                               \
  X(nvmlDeviceGetMarginTemperature, (nvml::Device, nvml::MarginTemperature*))                             \
  X(nvmlDeviceGetClockInfo, (nvml::Device, unsigned, unsigned*))                                          \
  X(nvmlDeviceGetMaxClockInfo, (nvml::Device, unsigned, unsigned*))                                       \
  X(nvmlDeviceGetPerformanceState, (nvml::Device, unsigned*))                                             \
  X(nvmlDeviceGetCurrentClocksEventReasons, (nvml::Device, std::uint64_t*))                               \
  X(nvmlDeviceGetCurrentClocksThrottleReasons, (nvml::Device, std::uint64_t*))                            \
  X(nvmlDeviceGetSupportedClocksEventReasons, (nvml::Device, std::uint64_t*))                             \
  X(nvmlDeviceGetSupportedClocksThrottleReasons, (nvml::Device, std::uint64_t*))                          \
  X(nvmlDeviceGetFieldValues, (nvml::Device, int, nvml::FieldValue*))                                     \
  X(nvmlDeviceGetMemoryErrorCounter, (nvml::Device, unsigned, unsigned, unsigned, std::uint64_t*))        \
  X(nvmlDeviceGetRowRemapperHistogram, (nvml::Device, nvml::RowRemapperHistogram*))                       \
  X(nvmlDeviceGetPcieReplayCounter, (nvml::Device, unsigned*))                                            \
  X(nvmlDeviceGetCurrPcieLinkGeneration, (nvml::Device, unsigned*))                                       \
  X(nvmlDeviceGetCurrPcieLinkWidth, (nvml::Device, unsigned*))                                            \
  X(nvmlDeviceGetMaxPcieLinkGeneration, (nvml::Device, unsigned*))                                        \
  X(nvmlDeviceGetMaxPcieLinkWidth, (nvml::Device, unsigned*))                                             \
  X(nvmlDeviceGetNvLinkState, (nvml::Device, unsigned, unsigned*))                                        \
  X(nvmlDeviceGetNvLinkErrorCounter, (nvml::Device, unsigned, unsigned, std::uint64_t*))                  \
  X(nvmlDeviceGetGpuFabricInfoV, (nvml::Device, nvml::FabricInfoV3*))                                     \
  X(nvmlDeviceGetNumFans, (nvml::Device, unsigned*))                                                      \
  X(nvmlDeviceGetFanSpeed, (nvml::Device, unsigned*))                                                     \
  X(nvmlDeviceGetFanSpeed_v2, (nvml::Device, unsigned, unsigned*))                                        \
  X(nvmlDeviceGetFanSpeedRPM, (nvml::Device, nvml::FanSpeed*))                                            \
  X(nvmlDeviceGetMaxMigDeviceCount, (nvml::Device, unsigned*))                                            \
  X(nvmlDeviceGetMigDeviceHandleByIndex, (nvml::Device, unsigned, nvml::Device*))                         \
  X(nvmlDeviceGetGpuInstanceId, (nvml::Device, unsigned*))                                                \
  X(nvmlDeviceGetComputeInstanceId, (nvml::Device, unsigned*))                                            \
  X(nvmlDeviceGetAttributes_v2, (nvml::Device, nvml::DeviceAttributes*))                                  \
  X(nvmlDeviceGetComputeRunningProcesses_v3, (nvml::Device, unsigned*, void*))                            \
  X(nvmlDeviceGetGraphicsRunningProcesses_v3, (nvml::Device, unsigned*, void*))                           \
  X(nvmlDeviceGetMPSComputeRunningProcesses_v3, (nvml::Device, unsigned*, void*))                         \
  X(nvmlDeviceGetProcessesUtilizationInfo, (nvml::Device, nvml::ProcessesUtilization*))                   \
  X(nvmlDeviceGetProcessUtilization, (nvml::Device, nvml::ProcessUtilization*, unsigned*, std::uint64_t)) \
  X(nvmlDeviceGetGridLicensableFeatures_v4, (nvml::Device, nvml::LicensableFeatures*))                    \
  X(nvmlEventSetCreate, (nvml::EventSet*))                                                                \
  X(nvmlDeviceGetSupportedEventTypes, (nvml::Device, std::uint64_t*))                                     \
  X(nvmlDeviceRegisterEvents, (nvml::Device, std::uint64_t, nvml::EventSet))                              \
  X(nvmlEventSetWait_v2, (nvml::EventSet, nvml::EventData*, unsigned))                                    \
  X(nvmlEventSetFree, (nvml::EventSet))                                                                   \
  X(nvmlGpmQueryDeviceSupport, (nvml::Device, nvml::GpmSupport*))                                         \
  X(nvmlGpmSampleAlloc, (nvml::GpmSample*))                                                               \
  X(nvmlGpmSampleFree, (nvml::GpmSample))                                                                 \
  X(nvmlGpmSampleGet, (nvml::Device, nvml::GpmSample))                                                    \
  X(nvmlGpmMigSampleGet, (nvml::Device, unsigned, nvml::GpmSample))                                       \
  X(nvmlGpmMetricsGet, (nvml::GpmMetricsGet*))

namespace gpumeter::nvidia {

/// The library's entry points.
struct NvmlFunctions {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declarator and a parameter list take none
#define GPUMETER_NVML_MEMBER(name, arguments) unsigned(*name) arguments = nullptr;
  GPUMETER_NVML_REQUIRED(GPUMETER_NVML_MEMBER)
  GPUMETER_NVML_OPTIONAL(GPUMETER_NVML_MEMBER)
#undef GPUMETER_NVML_MEMBER
};

}  // namespace gpumeter::nvidia
