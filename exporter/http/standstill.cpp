#include "exporter/http/standstill.hpp"

namespace gpumeter {
namespace {

/// Each wait has a limit (base/mutex.hpp); the loops look again.
constexpr auto kLook = std::chrono::milliseconds(100);

}  // namespace

bool Standstill::is_asked_by(const sockaddr* peer) noexcept {
  return peer != nullptr && peer->sa_family == kAddress.sa_family && peer->sa_data[0] == kAddress.sa_data[0];
}

void Standstill::begin() {
  const MutexLock lock(mutex_);
  is_on_ = true;
}

bool Standstill::holds(unsigned threads, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  const MutexLock lock(mutex_);
  while (held_ < threads && std::chrono::steady_clock::now() < end) {
    changed_.wait_for(mutex_, end - std::chrono::steady_clock::now());
  }
  return held_ >= threads;
}

void Standstill::end() noexcept {
  const MutexLock lock(mutex_);
  is_on_ = false;
  changed_.notify_all();
}

void Standstill::hold() {
  const MutexLock lock(mutex_);
  ++held_;
  changed_.notify_all();
  while (is_on_) changed_.wait_for(mutex_, kLook);
  --held_;
}

}  // namespace gpumeter
