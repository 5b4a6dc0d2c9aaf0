#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

/// Profiles of jobs on demand: processes that can be asked for a trace, and what asks them.
namespace gpumeter::profiles {

/// The length of a trace.
struct Extent {
  std::optional<unsigned> steps;  ///< nullopt: by time
  Nanoseconds duration = std::chrono::seconds(5);
};

/// An order for one trace.
struct Order {
  std::string path;  ///< absolute, as the process sees it, ending with ".json"; see Door::file_of()
  Extent extent;
};

/// A process that can be asked. The kernel identifies it.
struct Process {
  int pid = 0;  ///< in the daemon's pid namespace
  std::uint32_t uid = 0;

  bool operator==(const Process&) const = default;
};

/// How far a process is with its order.
enum class Stage : std::uint8_t { none, asked, taken, done, failed };

struct Progress {
  Stage stage = Stage::none;
  std::string why;  ///< of `failed`
};

/// One protocol by which frameworks accept orders. Each process has one order at most. No call blocks. Thread
/// "profiles".
class Door {
 public:
  virtual ~Door() = default;

  /// Sorted by pid.
  virtual std::vector<Process> processes() const = 0;
  /// Returns an Error if no such process is known, if it has an order, or if the protocol has no such extent.
  virtual Result<Done> ask(int pid, const Order& order, Nanoseconds now) = 0;
  virtual Progress progress(int pid) const = 0;
  /// Forgets the order. A trace that has begun continues.
  virtual void release(int pid) = 0;
  /// The file that the process writes for an order. `inner_pid`: its number in its own pid namespace.
  virtual std::string file_of(const Order& order, int pid, int inner_pid) const = 0;
  /// When the trace begins, for the user that asks.
  virtual std::string_view begins() const noexcept = 0;
  /// False: no condition can take a trace of the process, because nobody would write the file.
  virtual bool serves_conditions(int) const noexcept { return true; }
};

}  // namespace gpumeter::profiles
