#include "exporter/dcgm/rows.hpp"

#include "collectors/api/catalog.hpp"

namespace gpumeter::dcgm {
namespace {

constexpr auto gauge = MetricType::gauge;
constexpr auto counter = MetricType::counter;
constexpr Unit kNone{""};
constexpr Unit kMegahertz{"MHz", 1, 1e6}, kHertz{"Hz"};
constexpr Unit kMillijoules{"mJ", 1e3}, kJoules{"J"};
constexpr Unit kPercent{"%", 100}, kRatio{"0 to 1"};
constexpr Unit kMebibytes{"MiB", 1, 0x1p20}, kBytes{"bytes"};
constexpr Unit kNanoseconds{"ns", 1e9}, kSeconds{"s"};
constexpr Unit kWatts{"W"};
constexpr Unit kCelsius{"C"};

// clang-format off
constexpr Row kRows[] = {
    {"DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_SM_CLOCK_HERTZ", "SM clock frequency", gauge,
     &catalog::clock, "clock", "sm", Form::sum, kMegahertz, kHertz},
    {"DCGM_FI_DEV_MEM_CLOCK", "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", "Memory clock frequency", gauge,
     &catalog::clock, "clock", "memory", Form::sum, kMegahertz, kHertz},
    {"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS", "GPU temperature", gauge,
     &catalog::temperature, "sensor", "core", Form::sum, kCelsius, kCelsius},
    {"DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", "Memory temperature", gauge,
     &catalog::temperature, "sensor", "memory", Form::sum, kCelsius, kCelsius},
    {"DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_BOARD_POWER_WATTS", "Power draw", gauge,
     &catalog::power, "", "", Form::sum, kWatts, kWatts},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", "Total energy consumption", counter,
     &catalog::energy_joules, "", "", Form::sum, kMillijoules, kJoules},
    {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO", "GPU utilization", gauge,
     &catalog::utilization, "", "", Form::sum, kPercent, kRatio},
    {"DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_MEMORY_UTIL_RATIO", "Memory utilization", gauge,
     &catalog::memory_controller_utilization, "", "", Form::sum, kPercent, kRatio},
    {"DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_ENC_UTIL_RATIO", "Encoder utilization", gauge,
     &catalog::engine_utilization, "engine", "encode", Form::sum, kPercent, kRatio},
    {"DCGM_FI_DEV_DEC_UTIL", "DCGM_FI_DEV_DEC_UTIL_RATIO", "Decoder utilization", gauge,
     &catalog::engine_utilization, "engine", "decode", Form::sum, kPercent, kRatio},
    {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", "Share of time in which the graphics engine is active", gauge,
     &catalog::engine_utilization, "engine", "graphics", Form::graphics, kNone, kNone},
    {"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO", "Share of SMs with resident work", gauge,
     &catalog::compute_active, "", "", Form::divided, kNone, kNone},
    {"DCGM_FI_PROF_SM_OCCUPANCY", "DCGM_FI_PROF_SM_OCCUPANCY_RATIO", "Resident warps as a share of the maximum", gauge,
     &catalog::compute_occupancy, "", "", Form::divided, kNone, kNone},
    {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_TENSOR_UTIL_RATIO", "Share of cycles in which the tensor pipe is active", gauge,
     &catalog::pipe_active, "pipe", "tensor", Form::divided, kNone, kNone},
    {"DCGM_FI_PROF_PIPE_FP64_ACTIVE", "DCGM_FI_PROF_FP64_UTIL_RATIO", "Share of cycles in which the fp64 pipe is active", gauge,
     &catalog::pipe_active, "pipe", "fp64", Form::divided, kNone, kNone},
    {"DCGM_FI_PROF_PIPE_FP32_ACTIVE", "DCGM_FI_PROF_FP32_UTIL_RATIO", "Share of cycles in which the fp32 pipe is active", gauge,
     &catalog::pipe_active, "pipe", "fp32", Form::divided, kNone, kNone},
    {"DCGM_FI_PROF_PIPE_FP16_ACTIVE", "DCGM_FI_PROF_FP16_UTIL_RATIO", "Share of cycles in which the fp16 pipe is active", gauge,
     &catalog::pipe_active, "pipe", "fp16", Form::divided, kNone, kNone},
    {"DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_DRAM_UTIL_RATIO", "Share of cycles in which the memory interface is active", gauge,
     &catalog::memory_bandwidth_utilization, "", "", Form::divided, kNone, kNone},
    {"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_USED_BYTES", "Used framebuffer memory", gauge,
     &catalog::memory_used, "memory", "vram", Form::divided, kMebibytes, kBytes},
    {"DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_FREE_BYTES", "Free framebuffer memory", gauge,
     &catalog::memory_free, "memory", "vram", Form::divided, kMebibytes, kBytes},
    {"DCGM_FI_DEV_FB_RESERVED", "DCGM_FI_DEV_FB_RESERVED_BYTES", "Reserved framebuffer memory", gauge,
     &catalog::memory_reserved, "memory", "vram", Form::divided, kMebibytes, kBytes},
    {"DCGM_FI_DEV_FB_TOTAL", "DCGM_FI_DEV_FB_CAPACITY_BYTES", "Total framebuffer memory", gauge,
     &catalog::memory_size, "memory", "vram", Form::divided, kMebibytes, kBytes},
    {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_PCIE_REPLAY_TOTAL", "PCIe retries", counter,
     &catalog::pcie_replays, "", "", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL", "NVLink flow-control CRC errors", counter,
     &catalog::interconnect_errors, "error", "crc_flit", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_TOTAL", "NVLink data CRC errors", counter,
     &catalog::interconnect_errors, "error", "crc_data", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL", "NVLink retries", counter,
     &catalog::interconnect_errors, "error", "replay", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL", "NVLink recovery errors", counter,
     &catalog::interconnect_errors, "error", "recovery", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_POWER_VIOLATION", "DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL", "Throttling due to power constraints", counter,
     &catalog::throttle_seconds, "cause", "power", Form::sum, kNanoseconds, kSeconds},
    {"DCGM_FI_DEV_THERMAL_VIOLATION", "", "Throttling due to thermal constraints", counter,
     &catalog::throttle_seconds, "cause", "thermal", Form::sum, kNanoseconds, kSeconds},
    {"DCGM_FI_DEV_SYNC_BOOST_VIOLATION", "", "Throttling due to sync boost", counter,
     &catalog::throttle_seconds, "cause", "sync", Form::sum, kNanoseconds, kSeconds},
    {"DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", "", "Throttling due to the board limit", counter,
     &catalog::throttle_reason_seconds, "reason", "board_limit", Form::sum, kNanoseconds, kSeconds},
    {"DCGM_FI_DEV_RELIABILITY_VIOLATION", "", "Throttling due to reliability constraints", counter,
     &catalog::throttle_reason_seconds, "reason", "reliability", Form::sum, kNanoseconds, kSeconds},
    {"DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR", "Code of the last XID error", gauge,
     &catalog::xid_last_timestamp, "", "", Form::last_xid, kNone, kNone},
    {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "Single-bit volatile ECC errors", counter,
     &catalog::memory_errors, "severity", "corrected", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "Single-bit persistent ECC errors", counter,
     &catalog::memory_lifetime_errors, "severity", "corrected", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "Double-bit volatile ECC errors", counter,
     &catalog::memory_errors, "severity", "uncorrected", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "Double-bit persistent ECC errors", counter,
     &catalog::memory_lifetime_errors, "severity", "uncorrected", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_RETIRED_SBE", "DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL", "Pages retired because of single-bit errors", counter,
     &catalog::retired_pages, "cause", "single_bit", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_RETIRED_DBE", "DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL", "Pages retired because of double-bit errors", counter,
     &catalog::retired_pages, "cause", "double_bit", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_RETIRED_PENDING", "DCGM_FI_DEV_PAGE_RETIRED_PENDING", "Whether a page is pending retirement", counter,
     &catalog::retired_pages_pending, "", "", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL", "Rows remapped because of correctable errors", counter,
     &catalog::remapped_rows, "cause", "corrected", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", "Rows remapped because of uncorrectable errors", counter,
     &catalog::remapped_rows, "cause", "uncorrected", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_ROW_REMAP_FAILURE", "DCGM_FI_DEV_ROW_REMAP_FAILED", "Whether remapping of rows has failed", gauge,
     &catalog::row_remap_failed, "", "", Form::sum, kNone, kNone},
    {"DCGM_FI_DEV_VGPU_LICENSE_STATUS", "DCGM_FI_DEV_VGPU_LICENSE_STATUS", "vGPU license status", gauge,
     &catalog::license_state, "state", "licensed", Form::presence, kNone, kNone},
};
// clang-format on

}  // namespace

std::span<const Row> rows() noexcept { return kRows; }

}  // namespace gpumeter::dcgm
