#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/drm_use.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/intel/gts.hpp"

/// The busy time of a card's engines, by the events (PMU) of its driver.
namespace gpumeter::intel::pmu {

/// The busy time of a card's engines, by its events. Counts from any start; never falls.
struct EngineTimes {
  EngineSeconds seconds{};  ///< by class, in seconds of one engine of the class
  double busiest = 0;       ///< of the busiest engine
  Nanoseconds at{0};        ///< the time that the counts cover
  ReadStatus status = ReadStatus::unsupported;
};

/// A row's place in EngineTimes: a class, or the busiest engine.
inline constexpr std::size_t kBusiest = kEngineClassCount;

inline std::optional<double> seconds_of(const EngineTimes& times, std::size_t place) noexcept {
  return place == kBusiest ? std::optional(times.busiest) : times.seconds[place];
}

/// An event of a PMU, for the whole machine: perf_event_open(2) with pid -1.
struct Event {
  std::uint32_t type = 0;  ///< of the PMU, from its file `type`
  std::uint64_t config = 0;
  int cpu = 0;  ///< of the PMU's cpumask; the event counts the same on each
};

/// An open event. Lane thread.
class Counter {
 public:
  virtual ~Counter() = default;
  /// The count since the event was opened, in its own unit.
  virtual ReadStatus read(std::uint64_t& count) noexcept = 0;
};

/// A counter, or why there is none: `denied` without the capability, `gone` if the device lacks the event.
using Opened = std::variant<std::unique_ptr<Counter>, ReadStatus>;

/// Opens events. Any thread.
class Opener {
 public:
  virtual ~Opener() = default;
  virtual Opened open(const Event& event) = 0;
};

/// The kernel's. An event of xe's PMU holds the card awake for as long as it is open (kernel 7.2, xe_pmu.c).
class KernelOpener final : public Opener {
 public:
  Opened open(const Event& event) override;
};

/// `denied` if the kernel permits no events of the whole machine, which need CAP_PERFMON unless
/// kernel.perf_event_paranoid is 0 or less. Tries an event that touches no device.
ReadStatus permission(Opener& opener);

/// The reason and the remedy, for a log line.
std::string denial_note();

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

// The texts of a PMU's folder below /sys/bus/event_source/devices
// (Documentation/ABI/testing/sysfs-bus-event_source-devices-format and -events). They accept any text.

/// The bits of one term of an event, from a file of `format`: "config:0-11", "config:0-7,32-35". Only the
/// word `config` is known; i915 and xe use no other.
struct Field {
  struct Bits {
    unsigned first = 0, last = 0;
  };
  static constexpr std::size_t kMost = 4;
  std::array<Bits, kMost> ranges{};
  std::size_t count = 0;

  /// The value, spread over the bits; nullopt if it does not fit.
  std::optional<std::uint64_t> place(std::uint64_t value) const noexcept;
};
std::optional<Field> parse_field(std::string_view text) noexcept;

/// The value of one term of a file of `events`: 2 for "event=0x02", "event". nullopt: no such term.
std::optional<std::uint64_t> term_of(std::string_view text, std::string_view term) noexcept;

/// The first processor of a `cpumask`: 4 for "4-7,12". nullopt: the text is no list of processors.
std::optional<int> first_cpu(std::string_view text) noexcept;

/// An engine of an event's name: "vcs1-busy" of i915.
struct EngineName {
  std::string_view engine_class;  ///< rcs, bcs, vcs, vecs, ccs
  unsigned instance = 0;
};
std::optional<EngineName> parse_busy_event(std::string_view name) noexcept;

}  // namespace gpumeter::intel::pmu
