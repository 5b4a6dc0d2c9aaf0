#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/api/drm_use.hpp"
#include "collectors/intel/engine_times.hpp"
#include "collectors/intel/gts.hpp"
#include "collectors/intel/pmu/counter.hpp"

namespace gpumeter::intel::pmu {

/// The folder of a card's PMU: i915_0000_03_00.0 or xe_0000_03_00.0 (the address with `_` for `:`); `i915`
/// for graphics in the processor. Empty if the card has none.
std::string find_folder(const std::string& sysfs_root, std::string_view driver, std::string_view pci_address);

/// Busy time of a card's engines, by the events of its driver. i915 counts the nanoseconds of each engine. xe
/// counts ticks in which an engine was active and ticks in all; their quotient is the share of time (kernel
/// 7.2, i915_pmu.c and xe_pmu.c). Both numbers of a class are those of one engine: the mean of its engines.
/// Lane thread.
class EngineMeter {
 public:
  EngineMeter() = default;
  /// Opens the events of all engines. `folder` is that of find_folder().
  EngineMeter(const std::string& folder, std::string_view driver, const std::vector<Gt>& gts, Opener& opener);

  /// True if no event could be opened for lack of permission.
  bool is_denied() const noexcept { return is_denied_; }
  bool has(EngineClass engine_class) const noexcept;
  bool is_open() const noexcept { return !engines_.empty(); }

  /// Reads all events. `now` is CLOCK_MONOTONIC.
  const EngineTimes& read(Nanoseconds now) noexcept;
  /// The counts of the last read().
  const EngineTimes& times() const noexcept { return times_; }

 private:
  struct Engine {
    EngineClass engine_class;
    std::unique_ptr<Counter> active;
    std::unique_ptr<Counter> total;  // null: `active` counts nanoseconds
    std::uint64_t last_active = 0;
    std::uint64_t last_total = 0;
  };
  struct Pmu;
  void open_i915(const std::string& folder, const Pmu& pmu);
  void open_xe(const std::string& folder, const Pmu& pmu, const std::vector<Gt>& gts);
  std::unique_ptr<Counter> open(const Pmu& pmu, std::uint64_t config);
  ReadStatus advance(Engine& engine, double elapsed, double& busy) noexcept;

  std::vector<Engine> engines_;
  EngineTimes times_;
  bool is_denied_ = false;
  bool is_started_ = false;
};

}  // namespace gpumeter::intel::pmu
