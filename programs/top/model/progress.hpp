#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>

#include "programs/top/model/snapshot.hpp"

namespace gpumeter::top {

/// Computes rates of runs from the snapshots of the last minute. Until there are snapshots of 10 s, the rates
/// are means over the run's time. One thread.
class Progress {
 public:
  /// Fills in the rates and phases of the runs. `now_seconds`: when the daemon answered, of a clock that
  /// never steps.
  void update(Snapshot& snapshot, double now_seconds);

 private:
  struct Point {
    double seconds;
    Number steps, requests;
    Readings phases;
  };
  using Window = std::deque<Point>;

  static void fill_in(Run& run, const Window& window);

  std::map<std::pair<std::string, std::string>, Window> windows_;  ///< by name and user
};

}  // namespace gpumeter::top
