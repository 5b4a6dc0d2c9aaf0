#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "collectors/api/drm_use.hpp"
#include "collectors/intel/engine_times.hpp"

namespace gpumeter::intel {

/// Busy time of a card's engines as its clients report it in /proc/PID/fdinfo, by the machine's scanner. A
/// scan of xe wakes its card, so a sleeping card is not watched. Lane thread.
class Clients {
 public:
  Clients() = default;
  Clients(std::shared_ptr<DrmUsers> users, std::string pci_address)
      : users_(std::move(users)), address_(std::move(pci_address)) {}

  bool exists() const noexcept { return users_ != nullptr; }

  /// Asks for scans, or no longer.
  void watch(bool wanted) noexcept;

  /// The last scan. `unsupported` before the first, and `timeout` if it is old. `now` is CLOCK_MONOTONIC.
  const EngineTimes& read(Nanoseconds now) noexcept;

  /// True if an engine has worked since the last call.
  bool have_worked(Nanoseconds now) noexcept;

 private:
  std::shared_ptr<DrmUsers> users_;
  std::string address_;
  std::shared_ptr<void> watch_;
  EngineTimes times_;
  double noted_ = 0;  // busiest, at the last have_worked()
};

}  // namespace gpumeter::intel
