#pragma once

#include <map>
#include <string>

#include "collectors/api/clock.hpp"

namespace gpumeter::jobs {

/// What /proc tells of how processes belong together: who started whom, and who shares a cgroup. Remembered
/// for a few seconds. One thread.
class ProcessKin {
 public:
  struct Facts {
    int parent = 0;     ///< 0: unknown, or none
    std::string group;  ///< all of /proc/PID/cgroup; empty where that is nobody's group, such as the root's
  };

  /// `procfs`: /proc, or a copy of it in tests.
  explicit ProcessKin(std::string procfs) : procfs_(std::move(procfs)) {}

  /// Once a second or so: forgets what is old.
  void begin_pass(Nanoseconds now);

  /// Valid until the next begin_pass(). Reads two small files where it is not remembered.
  const Facts& of(int pid);

  /// Whether `ancestor` started `pid`, or one of those that did.
  bool descends(int pid, int ancestor);

 private:
  struct Entry {
    Facts facts;
    Nanoseconds read_at{};
  };

  std::string procfs_;
  Nanoseconds now_{};
  std::map<int, Entry> entries_;
};

}  // namespace gpumeter::jobs
