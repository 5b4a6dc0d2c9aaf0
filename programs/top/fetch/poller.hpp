#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/worker.hpp"
#include "programs/top/fetch/query.hpp"

namespace gpumeter::top {

/// The newest answer.
struct Latest {
  std::shared_ptr<const Snapshot> snapshot;
  Nanoseconds at{};     ///< when it came (CLOCK_MONOTONIC)
  std::string problem;  ///< why the last query failed; empty if it did not
};

/// Queries the daemon on its own thread, so that a host that does not answer never delays a key. Owner's
/// thread.
class Poller {
 public:
  /// `first` is shown until the thread has its own answer. `clock` must outlive the poller.
  Poller(Query query, Snapshot first, Nanoseconds interval, const Clock& clock);

  Result<Done> start();
  /// Readable when there is a new answer or problem.
  int descriptor() const noexcept;
  /// Also makes descriptor() unreadable.
  Latest take();
  /// Returns false if a query under way does not end within 200 ms. The caller must then leave by _exit().
  bool stop();

 private:
  struct Shared;
  static Nanoseconds turn(Shared& shared);

  const std::shared_ptr<Shared> shared_;  ///< with the thread
  const Clock& clock_;
  Worker worker_;
};

}  // namespace gpumeter::top
