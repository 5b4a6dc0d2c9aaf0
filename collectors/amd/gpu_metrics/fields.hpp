#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

/// The fields of amdgpu's `gpu_metrics`, under the kernel's names
/// (drivers/gpu/drm/amd/include/kgd_pp_interface.h).
namespace gpumeter::amd {

/// Unit of a field in one version. Units differ between versions, so readers receive base units only.
enum class BlobUnit : std::uint8_t {
  none,
  uncertain,  ///< depends on the chip or its firmware, which the table does not name: never read
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
  energy_units,  ///< 2^-16 J, the "15.259 uJ" in the kernel's comments
  nanoseconds,
  ticks_of_10_nanoseconds,
};

struct BlobField {
  std::string_view name;
  BlobUnit unit = BlobUnit::none;      ///< in format 1, of cards
  BlobUnit apu_unit = BlobUnit::none;  ///< in formats 2 and 3, of APUs
};

/// Removes the next word from the text and returns it; empty at the end.
constexpr std::string_view next_word(std::string_view& text) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

namespace fields {
using enum BlobUnit;

struct Group {
  BlobUnit unit, apu_unit;
  std::string_view names;
};

// clang-format off
/// Every field of any version that has a meaning outside the firmware.
inline constexpr Group kGroups[] = {
    // Temperatures. The firmware of APUs reports hundredths, which the driver passes on.
    {celsius, none, "temperature_edge temperature_hotspot temperature_mem temperature_vrgfx temperature_vrsoc "
     "temperature_vrmem temperature_hbm temperature_mid temperature_aid temperature_xcd"},
    {none, centicelsius, "temperature_gfx temperature_soc temperature_core temperature_l3 temperature_skin "
     "average_temperature_gfx average_temperature_soc average_temperature_core average_temperature_l3"},

    // Activity. Van Gogh's newer firmware reports percent, all other APUs hundredths of a percent.
    {percent, uncertain, "average_gfx_activity average_mm_activity"},
    {percent, none, "average_umc_activity vcn_activity jpeg_activity gfx_busy_inst vcn_busy jpeg_busy"},
    {none, uncertain, "average_vcn_activity average_ipu_activity average_core_c0_activity"},
    {none, none, "gfx_activity_acc mem_activity_acc gfx_busy_acc gfx_below_host_limit_acc gfx_below_host_limit_ppt_acc "
     "gfx_below_host_limit_thm_acc gfx_low_utilization_acc gfx_below_host_limit_total_acc"},

    // Power. The socket power of an APU is in W or mW, depending on the firmware (renoir_ppt.c); its rails
    // are in mW. Before 1.4 the unit of energy_accumulator depends on the chip.
    {watts, uncertain, "average_socket_power"},
    {watts, none, "curr_socket_power"},
    {energy_units, none, "energy_accumulator"},
    {none, milliwatts, "average_cpu_power average_soc_power average_gfx_power average_core_power average_apu_power "
     "average_dgpu_power average_all_core_power average_ipu_power average_sys_power stapm_power_limit "
     "current_stapm_power_limit"},
    {millivolts, none, "voltage_soc voltage_gfx voltage_mem"},
    {none, millivolts, "average_cpu_voltage average_soc_voltage average_gfx_voltage"},
    {none, none, "average_cpu_current average_soc_current average_gfx_current"},

    // Clocks
    {megahertz, megahertz, "average_gfxclk_frequency average_socclk_frequency average_uclk_frequency current_gfxclk "
     "current_socclk current_uclk"},
    {none, megahertz, "average_fclk_frequency average_vclk_frequency average_dclk_frequency average_vpeclk_frequency "
     "average_ipuclk_frequency average_mpipu_frequency current_fclk current_vclk current_dclk "
     "current_coreclk current_l3clk current_core_maxfreq current_gfx_maxfreq"},
    {megahertz, none, "average_vclk0_frequency average_dclk0_frequency average_vclk1_frequency average_dclk1_frequency "
     "current_vclk0 current_dclk0 current_vclk1 current_dclk1"},
    {none, none, "gfxclk_lock_status"},

    // Throttling. The bits of throttle_status depend on the chip. accumulation_counter counts cycles of the
    // firmware, the unit of the five *_residency_acc.
    {none, none, "throttle_status indep_throttle_status accumulation_counter prochot_residency_acc ppt_residency_acc "
     "socket_thm_residency_acc vr_thm_residency_acc hbm_thm_residency_acc throttle_residency_prochot "
     "throttle_residency_spl throttle_residency_fppt throttle_residency_sppt throttle_residency_thm_core "
     "throttle_residency_thm_gfx throttle_residency_thm_soc time_filter_alphavalue"},

    // Links and memory. The header documents pcie_bandwidth_* as GB/s, AMD's own tools as Mb/s.
    // xgmi_link_status of each link: 0 down, 1 up, 2 not present.
    {none, none, "pcie_link_width pcie_l0_to_recov_count_acc pcie_replay_count_acc pcie_replay_rover_count_acc "
     "pcie_nak_sent_count_acc pcie_nak_rcvd_count_acc pcie_lc_perf_other_end_recovery xgmi_link_width "
     "xgmi_link_speed xgmi_link_status average_dram_reads average_dram_writes average_ipu_reads "
     "average_ipu_writes"},
    {decigigatransfers, none, "pcie_link_speed"},
    {uncertain, none, "pcie_bandwidth_acc pcie_bandwidth_inst"},
    {kibibytes, none, "xgmi_read_data_acc xgmi_write_data_acc"},
    {gigabytes_per_second, none, "mem_max_bandwidth"},

    {rpm, none, "current_fan_speed"},
    {none, none, "fan_pwm num_partition"},
    {nanoseconds, nanoseconds, "system_clock_counter"},
    {ticks_of_10_nanoseconds, none, "firmware_timestamp"},
};
// clang-format on

consteval std::size_t count() {
  std::size_t words = 0;
  for (Group group : kGroups) {
    while (!next_word(group.names).empty()) ++words;
  }
  return words;
}

consteval std::array<BlobField, count()> expanded() {
  std::array<BlobField, count()> all{};
  auto* next = all.data();
  for (Group group : kGroups) {
    for (auto name = next_word(group.names); !name.empty(); name = next_word(group.names))
      *next++ = {name, group.unit, group.apu_unit};
  }
  return all;
}
inline constexpr auto kAll = expanded();

}  // namespace fields

inline constexpr std::size_t kBlobFieldCount = std::size(fields::kAll);

/// Position of a field in fields::kAll; kBlobFieldCount if the name is unknown.
constexpr std::size_t blob_field(std::string_view name) noexcept {
  const auto found = std::find_if(std::begin(fields::kAll), std::end(fields::kAll),
                                  [&](const BlobField& field) { return field.name == name; });
  return static_cast<std::size_t>(found - std::begin(fields::kAll));
}

/// The same for a name that must exist: an unknown name does not compile.
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
