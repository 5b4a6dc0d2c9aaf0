/// The part of Fleet that lets go of the drivers for a while (SIGUSR1, SIGUSR2).
#include <algorithm>
#include <thread>

#include "daemon/fleet/fleet.hpp"

namespace gpumeter {
namespace {

constexpr auto kCallsUnderWay = std::chrono::seconds(2);
constexpr auto kLook = std::chrono::milliseconds(10);

}  // namespace

bool Fleet::release(Nanoseconds at_most) {
  {
    MutexLock lock(mutex_);
    released_until_ = clock_.monotonic() + at_most;
    for (auto& [name, host] : hosts_) {  // the discovery thread is the last to let go, and closes the driver
      host.collector.reset();
      if (host.watcher) host.watcher->watch(nullptr);
      host.discoverer->pause(true);
    }
    for (const Member& member : members_) member.lane->release();
  }
  const Nanoseconds deadline = clock_.monotonic() + kCallsUnderWay;
  while (clock_.monotonic() < deadline) {
    {
      MutexLock lock(mutex_);
      if (all_released()) return true;
    }
    std::this_thread::sleep_for(kLook);
  }
  restore();
  return false;
}

// A lane without a thread holds nothing open; a thread that was left behind does.
bool Fleet::all_released() {
  const bool lanes = std::all_of(members_.begin(), members_.end(), [](const Member& member) {
    return !member.is_started || member.lane->status().state == Lane::State::released;
  });
  return lanes && !left_behind_.has_any() && std::none_of(hosts_.begin(), hosts_.end(), [](const auto& host) {
           const bool is_heard = host.second.watcher && !host.second.watcher->is_idle();
           return is_heard || host.second.discoverer->is_busy();
         });
}

void Fleet::restore_if_overdue() {
  {
    MutexLock lock(mutex_);
    if (!released_until_ || clock_.monotonic() < *released_until_) return;
  }
  log_.warn("drivers are opened again: nobody asked for it in time");
  restore();
}

// Discovery finds the devices again and revives their lanes.
void Fleet::restore() {
  MutexLock lock(mutex_);
  if (!released_until_) return;
  released_until_.reset();
  for (auto& [name, host] : hosts_) host.discoverer->pause(false);
}

}  // namespace gpumeter
