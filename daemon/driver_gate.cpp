#include "daemon/driver_gate.hpp"

namespace gpumeter {

bool DriverGate::enter() {
  MutexLock lock(mutex_);
  while (limited_ && free_ == 0 && !closed_) changed_.wait_for(mutex_, std::chrono::seconds(1));
  if (closed_) return false;
  --free_;
  return true;
}

void DriverGate::leave() {
  MutexLock lock(mutex_);
  ++free_;
  changed_.notify_all();
}

void DriverGate::close() {
  MutexLock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

}  // namespace gpumeter
