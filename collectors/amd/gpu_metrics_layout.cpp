#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "collectors/amd/gpu_metrics.hpp"

namespace gpumeter::amd {
namespace {

/// Computes at compile time the layout that a compiler for 64-bit machines gives a C struct of integers.
///
/// Members are words: "u16 temperature_edge pad u64 xgmi_read_data_acc[8]". A type holds for the names after
/// it, also in the next text. `pad` is a member that is not read; "repeat[8] { ... }" is an array of structs.
/// The header of four bytes is included already. A name that is not in fields.hpp does not compile.
class StructText {
 public:
  consteval StructText(int format, int content) : format_(format), content_(content) {}

  consteval void add(std::string_view text) {
    for (auto next = next_word(text); !next.empty(); next = next_word(text)) word(next);
  }

  /// Includes the tail padding that aligns arrays of the struct.
  consteval std::uint16_t size() const { return static_cast<std::uint16_t>(rounded(offset_, align_)); }

  consteval const BlobPlaces& places() const { return places_; }

 private:
  static consteval std::size_t rounded(std::size_t offset, std::size_t align) {
    return (offset + align - 1) / align * align;
  }

  static consteval std::size_t number(std::string_view digits) {
    std::size_t value = 0;
    for (const char digit : digits) value = value * 10 + static_cast<std::size_t>(digit - '0');
    return value;
  }

  consteval void word(std::string_view text) {
    if (text == "u8" || text == "u16" || text == "u32" || text == "u64") {
      width_ = number(text.substr(1)) / 8;
    } else if (text == "{") {
      open();
    } else if (text == "}") {
      close();
    } else {
      const std::size_t bracket = std::min(text.find('['), text.size());
      const std::size_t count =
          bracket == text.size() ? 1 : number(text.substr(bracket + 1, text.find(']') - bracket - 1));
      member(text.substr(0, bracket), count);
    }
  }

  consteval void member(std::string_view name, std::size_t count) {
    if (name == "repeat") {
      instances_ = count;
      return;
    }
    offset_ = rounded(offset_, width_);
    align_ = std::max(align_, width_);
    if (name != "pad") {
      const std::size_t field = blob_field(name);
      places_.at(field) = {static_cast<std::uint16_t>(offset_),
                           static_cast<std::uint16_t>(count),
                           0,
                           1,
                           static_cast<std::uint8_t>(width_),
                           false,
                           blob_unit(field, format_, content_)};
    }
    offset_ += count * width_;
  }

  // The array starts at the alignment of its struct, which contains a u64 in all versions.
  consteval void open() {
    offset_ = rounded(offset_, sizeof(std::uint64_t));
    start_ = offset_;
  }

  consteval void close() {
    const std::size_t stride = rounded(offset_ - start_, sizeof(std::uint64_t));
    for (BlobPlace& place : places_) {
      if (place.width == 0 || place.offset < start_) continue;
      place.stride = static_cast<std::uint16_t>(stride);
      place.instances = static_cast<std::uint8_t>(instances_);
    }
    offset_ = start_ + instances_ * stride;
  }

  int format_, content_;
  std::size_t offset_ = 4;  // after the header
  std::size_t align_ = 2;   // alignment of the header
  std::size_t width_ = 0;
  std::size_t instances_ = 1;
  std::size_t start_ = 0;
  BlobPlaces places_{};
};

consteval BlobLayout laid_out(std::string_view name, int format, int content,
                              std::initializer_list<std::string_view> texts) {
  StructText text(format, content);
  for (const std::string_view part : texts) text.add(part);
  return {name, static_cast<std::uint8_t>(format), static_cast<std::uint8_t>(content), text.size(),
          text.places()};
}

// Runs of members that several versions share.
constexpr std::string_view kCardTemperatures =
    "u16 temperature_edge temperature_hotspot temperature_mem temperature_vrgfx temperature_vrsoc "
    "temperature_vrmem";
constexpr std::string_view kCardAverages =
    "u16 average_gfx_activity average_umc_activity average_mm_activity average_socket_power";
constexpr std::string_view kCardClocks =
    "u16 average_gfxclk_frequency average_socclk_frequency average_uclk_frequency average_vclk0_frequency "
    "average_dclk0_frequency average_vclk1_frequency average_dclk1_frequency current_gfxclk current_socclk "
    "current_uclk current_vclk0 current_dclk0 current_vclk1 current_dclk1 u32 throttle_status";
constexpr std::string_view kCardRest =
    "u16 current_fan_speed pcie_link_width pcie_link_speed pad u32 gfx_activity_acc mem_activity_acc "
    "u16 temperature_hbm[4]";
constexpr std::string_view kCardTimes = "u64 energy_accumulator system_clock_counter";
constexpr std::string_view kFirmwareTime = "u64 firmware_timestamp";

constexpr std::string_view kInstinctHead =
    "u16 temperature_hotspot temperature_mem temperature_vrsoc curr_socket_power average_gfx_activity "
    "average_umc_activity";
constexpr std::string_view kInstinctLinks =
    "u16 pcie_link_width pcie_link_speed xgmi_link_width xgmi_link_speed u32 gfx_activity_acc "
    "mem_activity_acc "
    "u64 pcie_bandwidth_acc pcie_bandwidth_inst pcie_l0_to_recov_count_acc pcie_replay_count_acc "
    "pcie_replay_rover_count_acc";
constexpr std::string_view kNaks = "u32 pcie_nak_sent_count_acc pcie_nak_rcvd_count_acc";
constexpr std::string_view kXgmiData = "u64 xgmi_read_data_acc[8] xgmi_write_data_acc[8]";
constexpr std::string_view kInstinctClocks =
    "u16 current_gfxclk[8] current_socclk[4] current_vclk0[4] current_dclk0[4] current_uclk";
constexpr std::string_view kOldThrottle = "u32 throttle_status gfxclk_lock_status";
constexpr std::string_view kResidencies =
    "u32 accumulation_counter prochot_residency_acc ppt_residency_acc socket_thm_residency_acc "
    "vr_thm_residency_acc hbm_thm_residency_acc gfxclk_lock_status";
constexpr std::string_view kXgmiStatus = "u16 xgmi_link_status[8] pad";
constexpr std::string_view kRecoveries = "u32 pcie_lc_perf_other_end_recovery";

constexpr std::string_view kApuTemperatures =
    "u16 temperature_gfx temperature_soc temperature_core[8] temperature_l3[2]";
constexpr std::string_view kApuActivity = "u16 average_gfx_activity average_mm_activity";
constexpr std::string_view kApuPower =
    "u16 average_socket_power average_cpu_power average_soc_power average_gfx_power average_core_power[8]";
constexpr std::string_view kApuClocks =
    "u16 average_gfxclk_frequency average_socclk_frequency average_uclk_frequency average_fclk_frequency "
    "average_vclk_frequency average_dclk_frequency current_gfxclk current_socclk current_uclk current_fclk "
    "current_vclk current_dclk current_coreclk[8] current_l3clk[2] u32 throttle_status u16 fan_pwm";
constexpr std::string_view kTime = "u64 system_clock_counter";
constexpr std::string_view kIndependent = "u64 indep_throttle_status";
constexpr std::string_view kApuMeans =
    "u16 average_temperature_gfx average_temperature_soc average_temperature_core[8] "
    "average_temperature_l3[2]";

// clang-format off
constexpr BlobLayout kLayouts[] = {
    // Cards: 1.0 Vega12 and Vega20; 1.1 to 1.3 MI100, MI200, Navi 1x to 4x.
    laid_out("gpu_metrics_v1_0", 1, 0, {kTime, kCardTemperatures, kCardAverages, "u32 energy_accumulator", kCardClocks,
             "u16 current_fan_speed u8 pcie_link_width pcie_link_speed"}),
    laid_out("gpu_metrics_v1_1", 1, 1, {kCardTemperatures, kCardAverages, kCardTimes, kCardClocks, kCardRest}),
    laid_out("gpu_metrics_v1_2", 1, 2, {kCardTemperatures, kCardAverages, kCardTimes, kCardClocks, kCardRest, kFirmwareTime}),
    laid_out("gpu_metrics_v1_3", 1, 3, {kCardTemperatures, kCardAverages, kCardTimes, kCardClocks, kCardRest, kFirmwareTime,
             "u16 voltage_soc voltage_gfx voltage_mem pad", kIndependent}),

    // MI300 and MI350.
    laid_out("gpu_metrics_v1_4", 1, 4, {kInstinctHead, "u16 vcn_activity[4]", kCardTimes, kOldThrottle, kInstinctLinks,
             kXgmiData, kFirmwareTime, kInstinctClocks, "pad"}),
    laid_out("gpu_metrics_v1_5", 1, 5, {kInstinctHead, "u16 vcn_activity[4] jpeg_activity[32]", kCardTimes, kOldThrottle,
             kInstinctLinks, kNaks, kXgmiData, kFirmwareTime, kInstinctClocks, "pad"}),
    laid_out("gpu_metrics_v1_6", 1, 6, {kInstinctHead, kCardTimes, kResidencies, kInstinctLinks, kNaks, kXgmiData,
             kFirmwareTime, kInstinctClocks, "num_partition repeat[8] { u32 gfx_busy_inst[8] u16 jpeg_busy[32] vcn_busy[4]",
             "u64 gfx_busy_acc[8] }", kRecoveries}),
    laid_out("gpu_metrics_v1_7", 1, 7, {kInstinctHead, "u64 mem_max_bandwidth", kCardTimes, kResidencies, kInstinctLinks,
             kNaks, kXgmiData, kXgmiStatus, kFirmwareTime, kInstinctClocks,
             "num_partition repeat[8] { u32 gfx_busy_inst[8] u16 jpeg_busy[32] vcn_busy[4]",
             "u64 gfx_busy_acc[8] gfx_below_host_limit_acc[8] }", kRecoveries}),
    laid_out("gpu_metrics_v1_8", 1, 8, {kInstinctHead, "u64 mem_max_bandwidth", kCardTimes, kResidencies, kInstinctLinks,
             kNaks, kXgmiData, kXgmiStatus, kFirmwareTime, kInstinctClocks,
             "num_partition repeat[8] { u32 gfx_busy_inst[8] u16 jpeg_busy[40] vcn_busy[4]",
             "u64 gfx_busy_acc[8] gfx_below_host_limit_ppt_acc[8] gfx_below_host_limit_thm_acc[8]",
             "gfx_low_utilization_acc[8] gfx_below_host_limit_total_acc[8] }", kRecoveries}),

    // APUs: 2.0 and 2.2 Renoir and Cezanne; 2.1 Rembrandt, Phoenix, Raphael; 2.2 to 2.4 Van Gogh; 3.0 Strix.
    laid_out("gpu_metrics_v2_0", 2, 0, {kTime, kApuTemperatures, kApuActivity, kApuPower, kApuClocks, "pad"}),
    laid_out("gpu_metrics_v2_1", 2, 1, {kApuTemperatures, kApuActivity, kTime, kApuPower, kApuClocks, "pad[3]"}),
    laid_out("gpu_metrics_v2_2", 2, 2, {kApuTemperatures, kApuActivity, kTime, kApuPower, kApuClocks, "pad[3]", kIndependent}),
    laid_out("gpu_metrics_v2_3", 2, 3, {kApuTemperatures, kApuActivity, kTime, kApuPower, kApuClocks, "pad[3]", kIndependent,
             kApuMeans}),
    laid_out("gpu_metrics_v2_4", 2, 4, {kApuTemperatures, kApuActivity, kTime, kApuPower, kApuClocks, "pad[3]", kIndependent,
             kApuMeans, "average_cpu_voltage average_soc_voltage average_gfx_voltage",
             "average_cpu_current average_soc_current average_gfx_current"}),
    laid_out("gpu_metrics_v3_0", 3, 0, {"u16 temperature_gfx temperature_soc temperature_core[16] temperature_skin",
             "average_gfx_activity average_vcn_activity average_ipu_activity[8] average_core_c0_activity[16]",
             "average_dram_reads average_dram_writes average_ipu_reads average_ipu_writes", kTime,
             "u32 average_socket_power u16 average_ipu_power u32 average_apu_power average_gfx_power average_dgpu_power",
             "average_all_core_power u16 average_core_power[16] average_sys_power stapm_power_limit current_stapm_power_limit",
             "average_gfxclk_frequency average_socclk_frequency average_vpeclk_frequency average_ipuclk_frequency",
             "average_fclk_frequency average_vclk_frequency average_uclk_frequency average_mpipu_frequency",
             "current_coreclk[16] current_core_maxfreq current_gfx_maxfreq",
             "u32 throttle_residency_prochot throttle_residency_spl throttle_residency_fppt throttle_residency_sppt",
             "throttle_residency_thm_core throttle_residency_thm_gfx throttle_residency_thm_soc time_filter_alphavalue"}),
};
// clang-format on

}  // namespace

std::span<const BlobLayout> blob_layouts() noexcept { return kLayouts; }

}  // namespace gpumeter::amd
