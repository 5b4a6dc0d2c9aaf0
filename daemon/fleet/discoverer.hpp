#pragma once

#include <functional>
#include <memory>

#include "base/worker.hpp"
#include "collectors/api/collector.hpp"

namespace gpumeter {

/// Finds one collector's devices on a thread of its own ("find-NAME"), since opening a driver may hang and
/// must not delay other collectors. Runs at the start, every minute and on request.
class Discoverer : public std::enable_shared_from_this<Discoverer> {
 public:
  /// Called on the discovery thread after each run. The collector is null if it cannot be opened; the next
  /// run opens it again.
  using Report = std::function<void(std::shared_ptr<Collector>, Result<Discovery>)>;

  Discoverer(const CollectorEntry& entry, CollectorContext context, Report report);

  /// Starts the thread. Once; again after an Error.
  Result<Done> start();

  /// Runs a discovery soon.
  void request() { worker_.wake(); }

  /// While paused the thread looks for nothing, and closes the collector as soon as nobody else holds it.
  void pause(bool paused);

  /// As in Worker.
  void request_stop() { worker_.request_stop(); }
  bool join(Nanoseconds deadline) { return worker_.join(deadline); }
  bool is_idle() const { return worker_.is_idle(); }

  /// True while a run takes longer than any discovery should: the driver hangs.
  bool is_late() const;

 private:
  Nanoseconds turn() noexcept;
  bool discover();

  const CollectorEntry& entry_;
  const CollectorContext context_;
  const Report report_;

  // Discovery thread only.
  std::shared_ptr<Collector> collector_;
  bool is_paused_ = false;

  Worker worker_;
  Mailbox<bool> pauses_;  ///< true: pause
};

}  // namespace gpumeter
