#include "daemon/lane/driver_gate.hpp"

namespace gpumeter {

std::unique_ptr<DriverGate::Place> DriverGate::enter(Nanoseconds allowed) {
  MutexLock lock(mutex_);
  while (is_full() && !closed_) changed_.wait_for(mutex_, std::chrono::seconds(1));
  if (closed_) return nullptr;
  const Nanoseconds deadline = *deadlines_.insert(clock_.monotonic() + allowed);
  return std::unique_ptr<Place>(new Place(*this, deadline));
}

void DriverGate::leave(Nanoseconds deadline) {
  MutexLock lock(mutex_);
  deadlines_.erase(deadlines_.find(deadline));
  changed_.notify_all();
}

bool DriverGate::is_stuck() const {
  MutexLock lock(mutex_);
  return is_full() && clock_.monotonic() > *deadlines_.rbegin();
}

void DriverGate::close() {
  MutexLock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace gpumeter
