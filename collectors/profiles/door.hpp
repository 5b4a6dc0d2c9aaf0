#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"

/// Profiles of jobs on demand: processes that can be asked for a trace, and what asks them.
namespace gpumeter::profiles {

/// The length of a trace.
struct Extent {
  std::optional<unsigned> steps;  ///< nullopt: by time
  Nanoseconds duration = std::chrono::seconds(5);
};

/// An order for one trace.
struct Order {
  std::string path;  ///< absolute, as the process sees it, ending with ".json"; see file_of()
  Extent extent;
};

/// The file that the process with this number, as the process itself sees it, writes for the path of an
/// order: /tmp/x.json becomes /tmp/x_123.json.
std::string file_of(const std::string& path, int inner_pid);

/// A process that can be asked. The kernel identifies it.
struct Process {
  int pid = 0;  ///< in the daemon's pid namespace
  std::uint32_t uid = 0;
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
  /// Returns false if no such process is known, or if it has an order.
  virtual bool ask(int pid, const Order& order, Nanoseconds now) = 0;
  virtual Progress progress(int pid) const = 0;
  /// Forgets the order. A trace that has begun continues.
  virtual void release(int pid) = 0;
};

}  // namespace gpumeter::profiles
