#pragma once

#include <functional>
#include <memory>

#include "base/worker.hpp"
#include "collectors/api/collector.hpp"

namespace gpumeter {

/// Finds one collector's devices on a separate thread ("find-NAME"), because opening a driver may hang and
/// must not delay other collectors. Runs at the start, every 60 s (5 s while a device is incomplete) and on
/// request.
class Discoverer : public std::enable_shared_from_this<Discoverer> {
 public:
  /// Called on the discovery thread after each run. The collector is null if it cannot be opened; the next
  /// run opens it again.
  using Report = std::function<void(std::shared_ptr<Collector>, Result<Discovery>)>;

  Discoverer(const CollectorEntry& entry, CollectorContext context, Report report);

  /// Starts the thread. Call it once, and again only after an Error.
  Result<Done> start();

  /// Requests a discovery as soon as possible.
  void request() { worker_.wake(); }

  /// While paused, the thread runs no discovery, and closes the collector when it is the collector's last
  /// owner.
  void pause(bool paused);

  /// See Worker.
  void request_stop() { worker_.request_stop(); }
  bool join(Nanoseconds deadline) { return worker_.join(deadline); }
  bool is_idle() const { return worker_.is_idle(); }

  /// True if the discovery under way exceeds its limit: the driver hangs.
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
