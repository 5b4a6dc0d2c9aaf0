// dcgm-exporter's metrics from gpumeter's: one row a metric.
//   old, oldUnit   the name and unit of dcgm-exporter 4.8 (its etc/default-counters.csv and dcp-metrics-included.csv)
//   new, newUnit   those of 4.9. Renamed defaults: release notes of 4.9.0 and NVIDIA's field identifiers of DCGM 4.7. Optional
//                  ones: the names that DCGM 4.7's dcgm_fields.h gives these fields. Null: the spelling was not read, so the
//                  4.9 pack has no such record.
//   isDefault      whether it is on in the shipped list
//   value          the expression in gpumeter's base unit
//   toOld, toNew   from the base unit to that of the version
// If dcgm-exporter has a rate (PROF_PCIE_*, *NVLINK*), the value is our counter's rate over two minutes.
local from = import 'value.libsonnet';

local row(old, new, value, unit='') = {
  old: 'DCGM_' + old,
  new: if new == null then null else 'DCGM_' + new,
  value: value,
  oldUnit: unit,
  newUnit: unit,
  toOld: '%s',
  toNew: '%s',
  isDefault: true,
};
local optional = { isDefault: false };
local units(oldUnit, toOld, newUnit) = { oldUnit: oldUnit, toOld: toOld, newUnit: newUnit };
local megahertz = units('MHz', '%s / 1e6', 'Hz');
local percent = units('%', '%s * 100', '0 to 1');
local mebibytes = units('MiB', '2^-20 * %s', 'bytes');
local nanoseconds = units('ns', '%s * 1e9', 's');

[
  row('FI_DEV_SM_CLOCK', 'FI_DEV_SM_CLOCK_HERTZ', from.one('gpu_clock_hertz', 'clock', 'sm')) + megahertz,
  row('FI_DEV_MEM_CLOCK', 'FI_DEV_MEMORY_CLOCK_HERTZ', from.one('gpu_clock_hertz', 'clock', 'memory')) + megahertz,
  row('FI_DEV_GPU_TEMP', 'FI_DEV_GPU_TEMP_CELSIUS', from.one('gpu_temperature_celsius', 'sensor', 'core'), '°C'),
  row('FI_DEV_MEMORY_TEMP', 'FI_DEV_MEMORY_TEMP_CELSIUS', from.one('gpu_temperature_celsius', 'sensor', 'memory'), '°C'),
  row('FI_DEV_POWER_USAGE', 'FI_DEV_BOARD_POWER_WATTS', 'gpu_power_watts', 'W'),
  row('FI_DEV_TOTAL_ENERGY_CONSUMPTION', 'FI_DEV_GPU_ENERGY_JOULES_TOTAL', 'gpu_energy_joules_total')
  + units('mJ', '%s * 1e3', 'J'),

  // On a divided card each instance has its own value if the driver reports one, and the card as a whole has none, so a sum
  // over the cards counts nothing twice.
  row('FI_DEV_GPU_UTIL', 'FI_DEV_GPU_UTIL_RATIO', 'gpu_utilization_ratio') + percent,
  row('FI_DEV_MEM_COPY_UTIL', 'FI_DEV_MEMORY_UTIL_RATIO', 'gpu_memory_controller_utilization_ratio') + percent,
  row('FI_DEV_ENC_UTIL', 'FI_DEV_ENC_UTIL_RATIO', from.one('gpu_engine_utilization_ratio', 'engine', 'encode')) + percent,
  row('FI_DEV_DEC_UTIL', 'FI_DEV_DEC_UTIL_RATIO', from.one('gpu_engine_utilization_ratio', 'engine', 'decode')) + percent,
  row('FI_PROF_GR_ENGINE_ACTIVE', 'FI_PROF_GR_ENGINE_UTIL_RATIO', from.graphics, '0 to 1'),
  row('FI_PROF_SM_ACTIVE', 'FI_PROF_SM_UTIL_RATIO', from.divided('gpu_compute_active_ratio'), '0 to 1') + optional,
  row('FI_PROF_SM_OCCUPANCY', 'FI_PROF_SM_OCCUPANCY_RATIO', from.divided('gpu_compute_occupancy_ratio'), '0 to 1') + optional,
  row('FI_PROF_PIPE_TENSOR_ACTIVE', 'FI_PROF_TENSOR_UTIL_RATIO', from.divided('gpu_pipe_active_ratio', 'pipe', 'tensor'), '0 to 1'),
  row('FI_PROF_PIPE_FP64_ACTIVE', 'FI_PROF_FP64_UTIL_RATIO', from.divided('gpu_pipe_active_ratio', 'pipe', 'fp64'), '0 to 1') + optional,
  row('FI_PROF_PIPE_FP32_ACTIVE', 'FI_PROF_FP32_UTIL_RATIO', from.divided('gpu_pipe_active_ratio', 'pipe', 'fp32'), '0 to 1') + optional,
  row('FI_PROF_PIPE_FP16_ACTIVE', 'FI_PROF_FP16_UTIL_RATIO', from.divided('gpu_pipe_active_ratio', 'pipe', 'fp16'), '0 to 1') + optional,
  row('FI_PROF_DRAM_ACTIVE', 'FI_PROF_DRAM_UTIL_RATIO', from.divided('gpu_memory_bandwidth_utilization_ratio'), '0 to 1'),

  row('FI_DEV_FB_USED', 'FI_DEV_FB_USED_BYTES', from.divided('gpu_memory_used_bytes', 'memory', 'vram')) + mebibytes,
  row('FI_DEV_FB_FREE', 'FI_DEV_FB_FREE_BYTES', from.divided('gpu_memory_free_bytes', 'memory', 'vram')) + mebibytes,
  row('FI_DEV_FB_RESERVED', 'FI_DEV_FB_RESERVED_BYTES', from.divided('gpu_memory_reserved_bytes', 'memory', 'vram')) + mebibytes,
  // On by default in 4.9.
  row('FI_DEV_FB_TOTAL', 'FI_DEV_FB_CAPACITY_BYTES', from.divided('gpu_memory_size_bytes', 'memory', 'vram')) + mebibytes + optional,

  row('FI_DEV_PCIE_REPLAY_COUNTER', 'FI_DEV_PCIE_REPLAY_TOTAL', 'gpu_pcie_replays_total'),
  row('FI_PROF_PCIE_TX_BYTES', 'FI_PROF_PCIE_TX_BYTES', 'rate(gpu_pcie_transmitted_bytes_total[2m])', 'bytes/s'),
  row('FI_PROF_PCIE_RX_BYTES', 'FI_PROF_PCIE_RX_BYTES', 'rate(gpu_pcie_received_bytes_total[2m])', 'bytes/s'),
  // dcgm-exporter 4.8 declares a counter, but the value is a rate: KiB/s divided by 1000 (its pull request 658).
  row('FI_DEV_NVLINK_BANDWIDTH_TOTAL', 'FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND', from.nvlink(['received', 'transmitted']))
  + units('KiB/s / 1000', '%s / 1024e3', 'bytes/s'),
  row('FI_PROF_NVLINK_TX_BYTES', 'FI_PROF_NVLINK_TX_BYTES', from.nvlink(['transmitted']), 'bytes/s') + optional,
  row('FI_PROF_NVLINK_RX_BYTES', 'FI_PROF_NVLINK_RX_BYTES', from.nvlink(['received']), 'bytes/s') + optional,
  row('FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL', 'FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL', from.linkErrors('crc_flit')) + optional,
  row('FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL', 'FI_DEV_NVLINK_CRC_DATA_ERROR_TOTAL', from.linkErrors('crc_data')) + optional,
  row('FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL', 'FI_DEV_NVLINK_REPLAY_ERROR_TOTAL', from.linkErrors('replay')) + optional,
  row('FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL', 'FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL', from.linkErrors('recovery')) + optional,

  row('FI_DEV_POWER_VIOLATION', 'FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL', from.one('gpu_throttle_seconds_total', 'cause', 'power'))
  + nanoseconds + optional,
  row('FI_DEV_THERMAL_VIOLATION', null, from.one('gpu_throttle_seconds_total', 'cause', 'thermal')) + nanoseconds + optional,
  row('FI_DEV_SYNC_BOOST_VIOLATION', null, from.one('gpu_throttle_seconds_total', 'cause', 'sync')) + nanoseconds + optional,
  row('FI_DEV_BOARD_LIMIT_VIOLATION', null, from.reason('board_limit')) + nanoseconds + optional,
  row('FI_DEV_RELIABILITY_VIOLATION', null, from.reason('reliability')) + nanoseconds + optional,

  // The code of the last event; of two codes at the same time, the record has the higher. 0: no event since the daemon knows
  // the card (dcgm-exporter: since the driver was loaded).
  row('FI_DEV_XID_ERRORS', 'FI_DEV_XID_ERROR', from.lastXid, 'XID'),
  row('EXP_XID_ERRORS_COUNT', 'EXP_XID_ERRORS_COUNT', from.xidsOfFiveMinutes) + optional,
  row('FI_DEV_ECC_SBE_VOL_TOTAL', 'FI_DEV_ECC_SBE_VOL_TOTAL', from.errors('gpu_memory_errors_total', 'corrected')) + optional,
  row('FI_DEV_ECC_SBE_AGG_TOTAL', 'FI_DEV_ECC_SBE_AGG_TOTAL', from.errors('gpu_memory_lifetime_errors_total', 'corrected')) + optional,
  row('FI_DEV_ECC_DBE_VOL_TOTAL', 'FI_DEV_ECC_DBE_VOL_TOTAL', from.errors('gpu_memory_errors_total', 'uncorrected')) + optional,
  row('FI_DEV_ECC_DBE_AGG_TOTAL', 'FI_DEV_ECC_DBE_AGG_TOTAL', from.errors('gpu_memory_lifetime_errors_total', 'uncorrected')) + optional,
  row('FI_DEV_RETIRED_SBE', 'FI_DEV_PAGE_RETIRED_SBE_TOTAL', from.one('gpu_retired_pages', 'cause', 'single_bit')) + optional,
  row('FI_DEV_RETIRED_DBE', 'FI_DEV_PAGE_RETIRED_DBE_TOTAL', from.one('gpu_retired_pages', 'cause', 'double_bit')) + optional,
  row('FI_DEV_RETIRED_PENDING', 'FI_DEV_PAGE_RETIRED_PENDING', 'gpu_retired_pages_pending', '0 or 1') + optional,
  row('FI_DEV_CORRECTABLE_REMAPPED_ROWS', 'FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL', from.one('gpu_remapped_rows', 'cause', 'corrected')),
  row('FI_DEV_UNCORRECTABLE_REMAPPED_ROWS', 'FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL', from.one('gpu_remapped_rows', 'cause', 'uncorrected')),
  row('FI_DEV_ROW_REMAP_FAILURE', 'FI_DEV_ROW_REMAP_FAILED', 'gpu_row_remap_failed', '0 or 1'),
  row('FI_DEV_VGPU_LICENSE_STATUS', 'FI_DEV_VGPU_LICENSE_STATUS', from.licensed, '0 or 1'),
]
