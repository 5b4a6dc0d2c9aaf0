#pragma once

#include <atomic>
#include <cstdint>

namespace gpumeter::fake_nvml {

/// Seconds since the first nvmlInit_v2, or the time that a test sets.
class Clock {
 public:
  /// Sets zero to now, unless it is set already. FAKE_NVML_TIME in the environment stops the clock at that
  /// second.
  void start() noexcept;
  void restart() noexcept;
  void set(double seconds) noexcept;
  double now() const noexcept;
  bool is_virtual() const noexcept { return virtual_.load(); }

  /// Microseconds since 1970 at zero, the base of NVML's time stamps.
  std::int64_t epoch_usec() const noexcept { return epoch_usec_.load(); }

 private:
  std::atomic<std::int64_t> start_nanoseconds_{0}, epoch_usec_{0};
  std::atomic<bool> virtual_{false};
  std::atomic<double> set_to_{0};
};

}  // namespace gpumeter::fake_nvml
