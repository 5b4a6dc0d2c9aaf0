#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

/// The fields of amdgpu's `gpu_metrics` in the kernel's words
/// (drivers/gpu/drm/amd/include/kgd_pp_interface.h).
namespace gpumeter::amd {

/// Unit of a field in one version: versions differ, so readers get base units and never see it.
enum class BlobUnit : std::uint8_t {
  none,
  uncertain,  ///< depends on the chip or its firmware, which the table does not name: not to be read
  celsius,
  centicelsius,
  watts,
  milliwatts,
  percent,
  megahertz,
  millivolts,
  rpm,
  decigigatransfers,  ///< 0.1 GT/s
  gigabytes_per_second,
  kibibytes,
  energy_units,  ///< 2^-16 J, the "15.259 uJ" of the kernel's comments
  nanoseconds,
  ticks_of_10_nanoseconds,
};

struct BlobField {
  std::string_view name;
  BlobUnit unit = BlobUnit::none;      ///< in format 1, of cards
  BlobUnit apu_unit = BlobUnit::none;  ///< in formats 2 and 3, of APUs
};

namespace fields {
using enum BlobUnit;

/// Every field that any version has and that means anything outside of the firmware.
inline constexpr BlobField kAll[] = {
    // Temperatures. The firmware of APUs tells them in hundredths, and the driver passes that on.
    {"temperature_edge", celsius},
    {"temperature_hotspot", celsius},
    {"temperature_mem", celsius},
    {"temperature_vrgfx", celsius},
    {"temperature_vrsoc", celsius},
    {"temperature_vrmem", celsius},
    {"temperature_hbm", celsius},
    {"temperature_mid", celsius},
    {"temperature_aid", celsius},
    {"temperature_xcd", celsius},
    {"temperature_gfx", none, centicelsius},
    {"temperature_soc", none, centicelsius},
    {"temperature_core", none, centicelsius},
    {"temperature_l3", none, centicelsius},
    {"temperature_skin", none, centicelsius},
    {"average_temperature_gfx", none, centicelsius},
    {"average_temperature_soc", none, centicelsius},
    {"average_temperature_core", none, centicelsius},
    {"average_temperature_l3", none, centicelsius},

    // Activity. Van Gogh's newer firmware says percent where all other APUs say hundredths of it.
    {"average_gfx_activity", percent, uncertain},
    {"average_umc_activity", percent},
    {"average_mm_activity", percent, uncertain},
    {"average_vcn_activity", none, uncertain},
    {"average_ipu_activity", none, uncertain},
    {"average_core_c0_activity", none, uncertain},
    {"vcn_activity", percent},
    {"jpeg_activity", percent},
    {"gfx_busy_inst", percent},
    {"vcn_busy", percent},
    {"jpeg_busy", percent},
    {"gfx_activity_acc"},
    {"mem_activity_acc"},
    {"gfx_busy_acc"},
    {"gfx_below_host_limit_acc"},
    {"gfx_below_host_limit_ppt_acc"},
    {"gfx_below_host_limit_thm_acc"},
    {"gfx_low_utilization_acc"},
    {"gfx_below_host_limit_total_acc"},

    // Power. What an APU calls its socket's is in W or mW by firmware (renoir_ppt.c); its rails are in mW.
    {"average_socket_power", watts, uncertain},
    {"curr_socket_power", watts},
    {"energy_accumulator", energy_units},  // from 1.4 on; before, its unit depends on the chip
    {"average_cpu_power", none, milliwatts},
    {"average_soc_power", none, milliwatts},
    {"average_gfx_power", none, milliwatts},
    {"average_core_power", none, milliwatts},
    {"average_apu_power", none, milliwatts},
    {"average_dgpu_power", none, milliwatts},
    {"average_all_core_power", none, milliwatts},
    {"average_ipu_power", none, milliwatts},
    {"average_sys_power", none, milliwatts},
    {"stapm_power_limit", none, milliwatts},
    {"current_stapm_power_limit", none, milliwatts},
    {"voltage_soc", millivolts},
    {"voltage_gfx", millivolts},
    {"voltage_mem", millivolts},
    {"average_cpu_voltage", none, millivolts},
    {"average_soc_voltage", none, millivolts},
    {"average_gfx_voltage", none, millivolts},
    {"average_cpu_current"},
    {"average_soc_current"},
    {"average_gfx_current"},

    // Clocks
    {"average_gfxclk_frequency", megahertz, megahertz},
    {"average_socclk_frequency", megahertz, megahertz},
    {"average_uclk_frequency", megahertz, megahertz},
    {"average_fclk_frequency", none, megahertz},
    {"average_vclk_frequency", none, megahertz},
    {"average_dclk_frequency", none, megahertz},
    {"average_vclk0_frequency", megahertz},
    {"average_dclk0_frequency", megahertz},
    {"average_vclk1_frequency", megahertz},
    {"average_dclk1_frequency", megahertz},
    {"average_vpeclk_frequency", none, megahertz},
    {"average_ipuclk_frequency", none, megahertz},
    {"average_mpipu_frequency", none, megahertz},
    {"current_gfxclk", megahertz, megahertz},
    {"current_socclk", megahertz, megahertz},
    {"current_uclk", megahertz, megahertz},
    {"current_fclk", none, megahertz},
    {"current_vclk", none, megahertz},
    {"current_dclk", none, megahertz},
    {"current_vclk0", megahertz},
    {"current_dclk0", megahertz},
    {"current_vclk1", megahertz},
    {"current_dclk1", megahertz},
    {"current_coreclk", none, megahertz},
    {"current_l3clk", none, megahertz},
    {"current_core_maxfreq", none, megahertz},
    {"current_gfx_maxfreq", none, megahertz},
    {"gfxclk_lock_status"},

    // Throttling
    {"throttle_status"},  // bits depend on the chip
    {"indep_throttle_status"},
    {"accumulation_counter"},  // cycles of the firmware, in which the next five count
    {"prochot_residency_acc"},
    {"ppt_residency_acc"},
    {"socket_thm_residency_acc"},
    {"vr_thm_residency_acc"},
    {"hbm_thm_residency_acc"},
    {"throttle_residency_prochot"},
    {"throttle_residency_spl"},
    {"throttle_residency_fppt"},
    {"throttle_residency_sppt"},
    {"throttle_residency_thm_core"},
    {"throttle_residency_thm_gfx"},
    {"throttle_residency_thm_soc"},
    {"time_filter_alphavalue"},

    // Links and memory. The header calls pcie_bandwidth_* GB/s, AMD's own tools Mb/s.
    {"pcie_link_width"},
    {"pcie_link_speed", decigigatransfers},
    {"pcie_bandwidth_acc", uncertain},
    {"pcie_bandwidth_inst", uncertain},
    {"pcie_l0_to_recov_count_acc"},
    {"pcie_replay_count_acc"},
    {"pcie_replay_rover_count_acc"},
    {"pcie_nak_sent_count_acc"},
    {"pcie_nak_rcvd_count_acc"},
    {"pcie_lc_perf_other_end_recovery"},
    {"xgmi_link_width"},
    {"xgmi_link_speed"},
    {"xgmi_link_status"},  // of each link: 0 down, 1 up, 2 not there
    {"xgmi_read_data_acc", kibibytes},
    {"xgmi_write_data_acc", kibibytes},
    {"mem_max_bandwidth", gigabytes_per_second},
    {"average_dram_reads"},
    {"average_dram_writes"},
    {"average_ipu_reads"},
    {"average_ipu_writes"},

    {"current_fan_speed", rpm},
    {"fan_pwm"},
    {"num_partition"},
    {"system_clock_counter", nanoseconds, nanoseconds},
    {"firmware_timestamp", ticks_of_10_nanoseconds},
};

}  // namespace fields

inline constexpr std::size_t kBlobFieldCount = std::size(fields::kAll);

/// Position of a field in fields::kAll; kBlobFieldCount if there is none of that name.
constexpr std::size_t blob_field(std::string_view name) noexcept {
  const auto* const found = std::find_if(std::begin(fields::kAll), std::end(fields::kAll),
                                         [&](const BlobField& field) { return field.name == name; });
  return static_cast<std::size_t>(found - std::begin(fields::kAll));
}

/// For where a field must be there: one that is not does not compile.
consteval std::size_t known_blob_field(std::string_view name) {
  return blob_field(name) < kBlobFieldCount ? blob_field(name) : throw name;
}

/// Unit of a field in a version.
constexpr BlobUnit blob_unit(std::size_t field, int format, int content) noexcept {
  constexpr int kEnergyIsDefinedSince = 4;
  const BlobField& known = fields::kAll[field];
  const bool energy_of_the_chip =
      known.unit == BlobUnit::energy_units && format == 1 && content < kEnergyIsDefinedSince;
  if (energy_of_the_chip) return BlobUnit::uncertain;
  return format == 1 ? known.unit : known.apu_unit;
}

}  // namespace gpumeter::amd
