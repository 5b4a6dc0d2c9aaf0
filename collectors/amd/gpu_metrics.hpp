#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

#include "collectors/api/sample.hpp"
#include "collectors/sources/sysfs.hpp"

/// Chips whose gpu_metrics cannot be interpreted without knowing the model.
namespace gpumeter::amd {

enum class Chip : std::uint8_t { other, mi200, navi2x, van_gogh };

/// By PCI device, from amdgpu's own table (kernel 6.12, drivers/gpu/drm/amd/amdgpu/amdgpu_drv.c).
constexpr Chip chip_of(std::uint16_t device) noexcept {
  switch (device) {
    case 0x7408:
    case 0x740c:
    case 0x740f:
    case 0x7410:
      return Chip::mi200;
    case 0x163f:
      return Chip::van_gogh;
    default:
      break;
  }
  const bool navi_21_to_23 = device >= 0x73a0 && device <= 0x73ff;
  const bool navi_24 = device >= 0x7420 && device <= 0x743f;
  return navi_21_to_23 || navi_24 ? Chip::navi2x : Chip::other;
}

/// A bit of `throttle_status`, whose order is specific to the chip, and the chip-independent bit with the
/// same meaning (kThrottleReasons).
struct ChipThrottleBit {
  std::uint8_t chip;
  std::uint8_t independent;
};

/// Kernel 6.12: sienna_cichlid_ppt.c, aldebaran_ppt.c, vangogh_ppt.c, each in its *_throttler_map.
inline constexpr ChipThrottleBit kNavi2xBits[] = {{1, 35}, {2, 36}, {3, 34}, {4, 38},  {5, 40},  {6, 41},
                                                  {7, 39}, {8, 42}, {9, 43}, {11, 16}, {12, 17}, {13, 0},
                                                  {14, 1}, {15, 2}, {16, 3}, {17, 57}, {18, 56}, {19, 23}};
inline constexpr ChipThrottleBit kMi200Bits[] = {{0, 0},  {1, 1},  {2, 16},  {3, 17}, {4, 18},
                                                 {6, 32}, {7, 34}, {11, 38}, {12, 39}};
inline constexpr ChipThrottleBit kVanGoghBits[] = {{0, 4},  {1, 5},  {2, 6},  {3, 7},  {4, 33}, {5, 32},
                                                   {6, 37}, {7, 19}, {8, 17}, {9, 16}, {10, 20}};

constexpr std::span<const ChipThrottleBit> throttle_bits(Chip chip) noexcept {
  switch (chip) {
    case Chip::navi2x:
      return kNavi2xBits;
    case Chip::mi200:
      return kMi200Bits;
    case Chip::van_gogh:
      return kVanGoghBits;
    case Chip::other:
      return {};
  }
  return {};
}

/// The bits of the chip's `throttle_status` that match chip-independent ones; 0 if there is none.
constexpr std::uint64_t chip_throttle_mask(Chip chip, std::uint64_t independent) noexcept {
  std::uint64_t mask = 0;
  for (const ChipThrottleBit& bit : throttle_bits(chip)) {
    if ((independent >> bit.independent & 1) != 0) mask |= std::uint64_t{1} << bit.chip;
  }
  return mask;
}

/// Fields that the driver of a chip fills with a constant 0 (aldebaran_ppt.c).
constexpr bool is_never_filled(Chip chip, std::string_view field) noexcept {
  return chip == Chip::mi200 && field == "average_mm_activity";
}

/// MI200's accumulator has the unit of all versions from 1.4 on, 2^-16 J (smu13_driver_if_aldebaran.h).
/// Navi2x appears to count mJ in 32 bits, MI100 was found stuck (ROCm/amdsmi issue 38), others have 0.
constexpr bool energy_unit_is_known(Chip chip) noexcept { return chip == Chip::mi200; }

// The chip-independent throttler bits, `indep_throttle_status` (gpu_metrics 1.3, 2.2 and later; kernel 6.12
// drivers/gpu/drm/amd/pm/swsmu/inc/amdgpu_smu.h, SMU_THROTTLER_*_BIT), with the cause of each.

struct ThrottleReason {
  std::uint8_t bit;
  std::string_view cause;
  std::string_view reason;  ///< the kernel's name, in lower case
};

inline constexpr ThrottleReason kThrottleReasons[] = {
    {0, "power", "ppt0"},
    {1, "power", "ppt1"},
    {2, "power", "ppt2"},
    {3, "power", "ppt3"},
    {4, "power", "spl"},
    {5, "power", "fppt"},
    {6, "power", "sppt"},
    {7, "power", "sppt_apu"},
    {16, "current", "tdc_gfx"},
    {17, "current", "tdc_soc"},
    {18, "current", "tdc_mem"},
    {19, "current", "tdc_vdd"},
    {20, "current", "tdc_cvip"},
    {21, "current", "edc_cpu"},
    {22, "current", "edc_gfx"},
    {23, "current", "apcc"},
    {32, "thermal", "temp_gpu"},
    {33, "thermal", "temp_core"},
    {34, "thermal", "temp_mem"},
    {35, "thermal", "temp_edge"},
    {36, "thermal", "temp_hotspot"},
    {37, "thermal", "temp_soc"},
    {38, "thermal", "temp_vr_gfx"},
    {39, "thermal", "temp_vr_soc"},
    {40, "thermal", "temp_vr_mem0"},
    {41, "thermal", "temp_vr_mem1"},
    {42, "thermal", "temp_liquid0"},
    {43, "thermal", "temp_liquid1"},
    {44, "thermal", "vrhot0"},
    {45, "thermal", "vrhot1"},
    {46, "hardware", "prochot_cpu"},
    {47, "hardware", "prochot_gfx"},
    {56, "reliability", "ppm"},
    {57, "reliability", "fit"},
};

inline constexpr std::string_view kThrottleCauses[] = {"power", "current", "thermal", "hardware",
                                                       "reliability"};

constexpr std::uint64_t mask_of(const ThrottleReason& reason) noexcept {
  return std::uint64_t{1} << reason.bit;
}

/// All bits of a cause. Bits without a name are reserved and belong to no cause.
constexpr std::uint64_t mask_of_cause(std::string_view cause) noexcept {
  std::uint64_t mask = 0;
  for (const ThrottleReason& reason : kThrottleReasons) {
    if (reason.cause == cause) mask |= mask_of(reason);
  }
  return mask;
}

// amdgpu's `gpu_metrics`: a table of the firmware in the card's folder. Its fields under the kernel's names
// (drivers/gpu/drm/amd/include/kgd_pp_interface.h), their places by version, and what one read returns.

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
    // Added up in each cycle of the firmware: percentages (SMU_MUNIT_PERCENT), or 1 for a cycle.
    {percent, none, "gfx_activity_acc mem_activity_acc gfx_busy_acc"},
    {none, none, "gfx_below_host_limit_acc gfx_below_host_limit_ppt_acc gfx_below_host_limit_thm_acc "
     "gfx_low_utilization_acc gfx_below_host_limit_total_acc"},

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

/// Place of a field in one version; width 0: the version lacks the field.
struct BlobPlace {
  std::uint16_t offset = 0;
  std::uint16_t count = 0;     ///< elements
  std::uint16_t stride = 0;    ///< distance between the structs that contain the field, one per partition
  std::uint8_t instances = 1;  ///< number of those structs
  std::uint8_t width = 0;      ///< bytes of one element: 1, 2, 4 or 8
  bool is_signed = false;
  BlobUnit unit = BlobUnit::none;
};

using BlobPlaces = std::array<BlobPlace, kBlobFieldCount>;

struct BlobLayout {
  std::string_view name;  ///< the kernel's struct
  std::uint8_t format;    ///< format and content select the layout, by the header's two numbers
  std::uint8_t content;
  std::uint16_t size;  ///< sizeof the struct; the header contains it too
  BlobPlaces places;
};

/// All versions that are structs: 1.0 to 1.8, 2.0 to 2.4, 3.0. Minor versions are generally not prefixes of
/// each other (1.4 moves fields of 1.3), so an unlisted version is rejected. 1.9 describes itself.
std::span<const BlobLayout> blob_layouts() noexcept;

/// The result of one read of `gpu_metrics`: many values for one mailbox call to the firmware. Keeps the
/// bytes. One thread, allocates nothing.
class GpuMetricsBlob {
 public:
  /// Four times the largest known version, 1.8 with 3872 bytes.
  static constexpr std::size_t kMaxSize = 16384;

  /// Reads the file and dispatches on the header, which may differ if another driver was loaded.
  /// `unsupported` for an unknown version, `failed` for bytes that are not gpu_metrics.
  ReadStatus read(const sysfs::File& file) noexcept;

  /// The same for bytes from another source.
  ReadStatus parse(std::span<const char> bytes) noexcept;

  ReadStatus status() const noexcept { return status_; }

  /// True if the version has the field, or that element of it, in a known unit, regardless of its value.
  bool has(std::size_t field, std::size_t element = 0) const noexcept;

  /// The same, in any unit.
  bool holds(std::size_t field, std::size_t element = 0) const noexcept {
    return element < places()[field].count;
  }

  /// The value in base units (celsius, watts, ratio, hertz, volts, seconds, bytes, joules). The driver marks
  /// values that the chip lacks with all-ones, which is `unsupported`. Newer firmware uses 0 for temperatures
  /// and voltages, which is `unsupported` too. `instance`: the partition, for fields that each partition has.
  Sample value(std::size_t field, std::size_t element, std::size_t instance = 0) const noexcept;

  /// The first available element: in an array by die or engine, that of the first one.
  Sample value(std::size_t field) const noexcept;

  /// The sum of all available elements.
  Sample sum(std::size_t field) const noexcept;

  /// The highest of all available elements, in all partitions.
  Sample highest(std::size_t field) const noexcept;

  /// The highest element of one of `parts` partitions. If each partition has its own struct, it is read from
  /// there. Otherwise it is read from the partition's share of the one array, which holds their dies in
  /// order.
  Sample highest(std::size_t field, std::size_t part, std::size_t parts) const noexcept;

  /// Number of elements whose value is set as a bit in `mask`: 0b110 for 1 and 2.
  Sample count_of(std::size_t field, std::uint64_t mask) const noexcept;

  /// A field that is a set of flags.
  struct Flags {
    std::uint64_t bits = 0;
    ReadStatus status = ReadStatus::unsupported;

    /// 1 if any flag of `mask` is set, 0 otherwise.
    Sample any_of(std::uint64_t mask) const noexcept {
      if (status != ReadStatus::ok) return Sample::miss(status);
      return Sample::of((bits & mask) != 0 ? 1 : 0);
    }
  };
  Flags flags(std::size_t field) const noexcept;

  /// The raw element, in any unit; nullopt if it is all-ones or missing.
  std::optional<std::uint64_t> raw(std::size_t field, std::size_t element = 0) const noexcept;

  /// The same of a die, by its place among the elements that are filled, in all partitions. Dies that the
  /// chip lacks are all-ones.
  std::optional<std::uint64_t> of_die(std::size_t field, std::size_t die) const noexcept;

  /// Width of an element in bits, at which a counter wraps.
  int bits(std::size_t field) const noexcept { return 8 * places()[field].width; }

 private:
  Sample highest_in(std::size_t field, std::size_t begin, std::size_t end,
                    std::size_t instance) const noexcept;
  ReadStatus accept(std::size_t size) noexcept;
  ReadStatus choose_places(std::size_t structure_size) noexcept;
  const BlobPlaces& places() const noexcept { return layout_ != nullptr ? layout_->places : own_places_; }
  std::uint64_t bits_of(const BlobPlace& place, std::size_t element, std::size_t instance) const noexcept;

  std::array<char, kMaxSize> bytes_{};
  static constexpr BlobLayout kNoFields{};
  const BlobLayout* layout_ = &kNoFields;  // null: own_places_, of a version that describes itself
  BlobPlaces own_places_{};
  ReadStatus status_ = ReadStatus::unsupported;
};

/// Drivers mark a temperature or a voltage that the chip lacks with 0 as well as with all-ones.
constexpr bool zero_is_absent(BlobUnit unit) noexcept {
  return unit == BlobUnit::celsius || unit == BlobUnit::centicelsius || unit == BlobUnit::millivolts;
}

/// Firmware sometimes slightly overshoots 100 % at full load (kernels of 2026 clamp it themselves). A value
/// far above 100 is not a percentage; the row's range rejects it.
constexpr double ratio_of_percent(double percent) noexcept {
  constexpr double kFull = 100;
  constexpr double kOvershoot = 2 * kFull;
  return percent > kFull && percent <= kOvershoot ? 1 : percent / kFull;
}

/// Divides if the factor is below 1: 1e-3 has no exact double, 1e3 has.
constexpr double to_base(double value, BlobUnit unit) noexcept {
  switch (unit) {
    case BlobUnit::percent:
      return ratio_of_percent(value);
    case BlobUnit::centicelsius:
      return value / 1e2;
    case BlobUnit::megahertz:
      return value * 1e6;
    case BlobUnit::milliwatts:
    case BlobUnit::millivolts:
      return value / 1e3;
    case BlobUnit::nanoseconds:
      return value / 1e9;
    case BlobUnit::ticks_of_10_nanoseconds:
      return value / 1e8;
    case BlobUnit::decigigatransfers:
      return value * 1e8;
    case BlobUnit::gigabytes_per_second:
      return value * 1e9;
    case BlobUnit::kibibytes:
      return value * 1024;
    case BlobUnit::energy_units:
      return value / 65536;
    case BlobUnit::none:
    case BlobUnit::uncertain:
    case BlobUnit::celsius:
    case BlobUnit::watts:
    case BlobUnit::rpm:
      return value;
  }
  return value;
}

/// Time in a state as MI300 and later count it (gpu_metrics 1.6 on). In each of its cycles the firmware adds
/// 1 to accumulation_counter, 1 to each residency that is active in it, and the present percentage to each
/// activity. The share of the time between two reads, by the firmware's clock, is
///
///   growth of the residency / growth of accumulation_counter (of an activity: a hundredth of that)
///
/// AMD's tools show the share of a limit as "violation"; its RDC divides an activity by the firmware's
/// milliseconds. With several counters, the one with the largest growth counts. Their overlap is unknown, so
/// this is the minimum during which any of them was active. One thread.
class Residency {
 public:
  /// A field, and the die of a field that has one element for each. Unused: the default.
  struct Counter {
    std::size_t field = kBlobFieldCount;
    std::size_t die = 0;
  };
  static constexpr std::size_t kMostCounters = 4;  // the dies of half a card
  using Counters = std::array<Counter, kMostCounters>;

  Residency() = default;
  explicit Residency(const Counters& counters) : counters_(counters) {}

  /// Seconds since the first call. `unsupported` if the table lacks a part of it.
  Sample advance(const GpuMetricsBlob& blob) noexcept;

  /// Discards the last reading, so that the time before the next one is not counted.
  void restart() noexcept { last_.reset(); }

 private:
  struct Reading {
    std::uint64_t cycles = 0;
    double seconds = 0;
    std::array<std::uint64_t, kMostCounters> counts{};
  };
  std::optional<Reading> read(const GpuMetricsBlob& blob) const noexcept;
  double grown(const GpuMetricsBlob& blob, const Reading& now) const noexcept;

  Counters counters_{};
  std::optional<Reading> last_;
  double total_ = 0;
};

}  // namespace gpumeter::amd
