#include "daemon/fleet/discoverer.hpp"

#include <exception>
#include <string>
#include <utility>

namespace gpumeter {
namespace {

// Uevents report hot plug at once. This interval finds changes without an event, such as a driver loaded
// late.
constexpr auto kEvery = std::chrono::seconds(60);
// The interval while a device does not report its identity.
constexpr auto kEveryIncomplete = std::chrono::seconds(5);
// The limit of an attach: nvmlInit on a machine with 16 GPUs takes some seconds.
constexpr auto kDeadline = std::chrono::seconds(10);

}  // namespace

Discoverer::Discoverer(const CollectorEntry& entry, CollectorContext context, Report report)
    : entry_(entry), context_(std::move(context)), report_(std::move(report)), worker_(*context_.clock) {}

// The thread closes the collector, because closing a driver may hang too.
Result<Done> Discoverer::start() {
  const std::shared_ptr<Discoverer> self = shared_from_this();
  return worker_.start(
      "find-" + std::string(entry_.name), [self] { return self->turn(); },
      [self] { self->collector_.reset(); });
}

void Discoverer::pause(bool paused) {
  pauses_.post(paused, [](bool) { return true; });
  worker_.wake();
}

bool Discoverer::is_late() const { return worker_.is_busy_for(kDeadline); }

Nanoseconds Discoverer::turn() noexcept {
  for (const bool paused : pauses_.take()) is_paused_ = paused;
  try {
    return discover() ? kEvery : kEveryIncomplete;
  } catch (const std::exception& problem) {  // collectors must not throw; an exception affects only its own
                                             // collector
    report_(nullptr, Error(problem.what()));
  }
  return kEvery;
}

// Returns false if a device is incomplete.
bool Discoverer::discover() {
  if (is_paused_) {
    collector_.reset();
    return true;
  }
  if (!collector_) {
    Result<std::unique_ptr<Collector>> opened = entry_.open(context_);
    if (!opened) {
      report_(nullptr, opened.error());
      return true;
    }
    collector_ = *std::move(opened);
  }
  Result<Discovery> found = collector_->discover();
  const bool is_complete = !found || !found->is_incomplete;
  report_(collector_, std::move(found));
  return is_complete;
}

}  // namespace gpumeter
