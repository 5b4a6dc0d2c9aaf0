#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "collectors/nvidia/nvml/session.hpp"
#include "collectors/nvidia/sources.hpp"

namespace gpumeter::nvidia {

/// The bit error ratio in a field value: a mantissa in bits 8 to 11, a negative power of ten in bits 0 to 7
/// (nvml.h at NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER).
double bit_error_ratio(double field) noexcept;

/// The NVLinks of one GPU, each read once a pass. Selects the links that have something to say: one that is
/// down and was up, or that is active without traffic, slower than the others, above the published bit error
/// ratios, with recoveries since the driver was loaded, or with new replays or errors of packets. A link that
/// was never up is off by design and says nothing. Lane thread.
class NvLinks {
 public:
  /// With `links: sum` a GPU has series of at most so many links: the worst.
  static constexpr std::size_t kMostShown = 4;

  /// The GPU was opened: reads its links and selects those that are shown until the next open(). A caller of
  /// its own, whose troubles are not the GPU's.
  void open(NvmlCaller gpu) noexcept;

  /// Drops the readings.
  void begin_pass() noexcept { is_fresh_ = false; }

  /// Number of links that are up; without any link the status of the first.
  Sample up(NvmlCaller& gpu) noexcept;
  /// 1 if this link is up, 0 otherwise.
  Sample is_up(NvmlCaller& gpu, std::uint64_t link) noexcept;
  /// The data rate in MB/s of most links that are up.
  Sample speed(NvmlCaller& gpu) noexcept;

  bool shows(std::uint64_t link) const noexcept { return link < nvml::kMostLinks && shown_[link]; }
  /// Whether other links are the worst than those that are shown.
  bool has_changed() const noexcept { return worst_ != shown_; }

 private:
  struct Link {
    Sample up = Sample::miss(ReadStatus::unsupported);
    double speed = 0;  ///< MB/s; 0: unknown
    double score = 0;  ///< how bad it is; 0: nothing to say
  };
  using Set = std::bitset<nvml::kMostLinks>;

  void read(NvmlCaller& gpu) noexcept;
  Link read_link(NvmlCaller& gpu, unsigned link) noexcept;
  void find_common_speed() noexcept;
  void select() noexcept;
  std::size_t worst_beside(const Set& set) const noexcept;

  std::array<Link, nvml::kMostLinks> links_{};
  std::size_t count_ = 0;
  double common_speed_ = 0;
  bool is_fresh_ = false;
  std::array<std::optional<double>, nvml::kMostLinks> known_errors_{};  ///< that are no news
  Set was_up_;  ///< at any time, also before the GPU was lost
  Set worst_;
  Set shown_;
};

}  // namespace gpumeter::nvidia
