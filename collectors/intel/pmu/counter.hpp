#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "base/descriptor.hpp"
#include "collectors/api/sample.hpp"

namespace gpumeter::intel::pmu {

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

}  // namespace gpumeter::intel::pmu
