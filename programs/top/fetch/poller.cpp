#include "programs/top/fetch/poller.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/descriptor.hpp"
#include "base/mutex.hpp"

namespace gpumeter::top {

using std::chrono::milliseconds;

struct Poller::Shared {
  Query query;  ///< the thread's
  const Nanoseconds interval;
  const Clock& clock;
  const Descriptor news;
  Mutex mutex;
  Latest latest GPUMETER_GUARDED_BY(mutex);
};

Poller::Poller(Query query, Snapshot first, Nanoseconds interval, const Clock& clock)
    : shared_(new Shared{
          std::move(query), interval, clock, Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), {}, {}}),
      clock_(clock),
      worker_(clock) {
  MutexLock lock(shared_->mutex);
  shared_->latest = {std::make_shared<const Snapshot>(std::move(first)), clock.monotonic(), {}};
}

Result<Done> Poller::start() {
  return worker_.start("poller",
                       [shared = shared_]() -> std::optional<Nanoseconds> { return turn(*shared); });
}

int Poller::descriptor() const noexcept { return shared_->news.number(); }

Latest Poller::take() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t size = read(descriptor(), &count, sizeof count);
  MutexLock lock(shared_->mutex);
  return shared_->latest;
}

bool Poller::stop() { return worker_.stop(clock_.monotonic() + milliseconds(200)); }

Nanoseconds Poller::turn(Shared& shared) {
  const Nanoseconds begin = shared.clock.monotonic();
  Result<Snapshot> snapshot = shared.query.run();
  const Nanoseconds end = shared.clock.monotonic();
  {
    MutexLock lock(shared.mutex);
    if (snapshot) {
      shared.latest = {std::make_shared<const Snapshot>(*std::move(snapshot)), end, {}};
    } else {
      shared.latest.problem = snapshot.error().message();
    }
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t size = write(shared.news.number(), &one, sizeof one);
  return std::max<Nanoseconds>(shared.interval - (end - begin), milliseconds(50));
}

}  // namespace gpumeter::top
