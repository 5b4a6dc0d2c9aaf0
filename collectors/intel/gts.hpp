#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/sources/sysfs.hpp"

/// The graphics tiles of a card, and the reasons for which their clocks are limited.
namespace gpumeter::intel {

/// One graphics tile (GT) of a card, and its files as either driver names them. Sources: kernel 7.2,
/// i915/gt/intel_gt_sysfs_pm.c, xe/xe_gt_freq.c, xe/xe_gt_idle.c, xe/xe_gt_throttle.c.
struct Gt {
  int index = 0;                     ///< unique on the card, over all tiles
  bool is_media = false;             ///< it has only video engines
  std::string act_freq;              ///< MHz; 0 while the clock is gated
  std::string max_freq;              ///< MHz; the highest that the hardware allows
  std::string idle_ms;               ///< time in RC6 or C6 since the driver was loaded
  std::string throttle_folder;       ///< empty: before Gen11
  std::string_view throttle_prefix;  ///< of the files in it, one per reason
  std::vector<std::string> engines;  ///< xe: classes of its engines, "rcs", "ccs"
};

/// The GTs below the folder of a PCI function, by index. Graphics before the drivers had a folder for each GT
/// have one, with the files of the whole card.
std::vector<Gt> find_gts(const std::string& function);

struct ThrottleReason {
  std::string_view reason, cause;
};

/// The drivers' reasons (kernel 7.2, xe_gt_throttle.c and i915/gt/intel_gt_sysfs_pm.c). A chip has those
/// whose files its folder lists. The last entry stands for files that this list lacks.
inline constexpr ThrottleReason kThrottleReasons[] = {
    {"pl1", "power"},
    {"pl2", "power"},
    {"pl4", "power"},
    {"psys_pl1", "power"},
    {"psys_pl2", "power"},
    {"psys_crit", "power"},
    {"thermal", "thermal"},
    {"ratl", "thermal"},
    {"vr_thermalert", "thermal"},
    {"soc_thermal", "thermal"},
    {"mem_thermal", "thermal"},
    {"vr_thermal", "thermal"},
    {"soc_avg_thermal", "thermal"},
    {"vr_tdc", "current"},
    {"iccmax", "current"},
    {"prochot", "hardware"},
    {"pwrbrk", "hardware"},
    {"fastvmode", "software"},
    {"p0_freq", "software"},
    {"other", "hardware"},
};
inline constexpr std::size_t kThrottleReasonCount = std::size(kThrottleReasons);
inline constexpr std::string_view kThrottleCauses[] = {"power", "thermal", "current", "hardware", "software"};

/// A set of reasons: bit i is kThrottleReasons[i].
using ThrottleMask = std::uint32_t;

constexpr ThrottleMask mask_of_cause(std::string_view cause) noexcept {
  ThrottleMask mask = 0;
  for (std::size_t i = 0; i < kThrottleReasonCount; ++i) {
    if (kThrottleReasons[i].cause == cause) mask |= ThrottleMask{1} << i;
  }
  return mask;
}

/// The bit of a reason's name; that of `other` if the name is unknown.
ThrottleMask mask_of_reason(std::string_view reason) noexcept;

/// Parses the file `reasons`: names between blanks, or "none".
ThrottleMask active_reasons(std::string_view text) noexcept;

/// The files of all GTs of a card. Reading them wakes the card. Lane thread.
class Throttle {
 public:
  Throttle() = default;
  explicit Throttle(const std::vector<Gt>& gts);

  /// The reasons for which the card has a file.
  ThrottleMask known() const noexcept { return known_; }

  /// Discards the reading of the last pass.
  void begin_pass() noexcept { is_fresh_ = false; }

  struct Reading {
    ThrottleMask active = 0;
    ReadStatus status = ReadStatus::unsupported;
  };
  /// The active reasons of all GTs, read by the first call of a pass.
  const Reading& read() noexcept;

 private:
  struct Flag {
    sysfs::File file;
    ThrottleMask reason;
  };
  void add(const Gt& gt);
  Reading read_all() noexcept;
  void read_texts(Reading& reading) noexcept;

  ThrottleMask known_ = 0;
  std::vector<sysfs::File> texts_;  // `reasons` of each GT that has it: all reasons at one moment
  std::vector<Flag> flags_;         // of GTs without it: one file per reason
  Reading reading_;
  bool is_fresh_ = false;
};

}  // namespace gpumeter::intel
