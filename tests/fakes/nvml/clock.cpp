#include "tests/fakes/nvml/clock.hpp"

#include <chrono>
#include <cstdlib>

namespace gpumeter::fake_nvml {
namespace {

std::int64_t steady_nanoseconds() noexcept {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void Clock::start() noexcept {
  if (start_nanoseconds_.load() != 0) return;
  restart();
  if (const char* fixed = std::getenv("FAKE_NVML_TIME")) set(std::atof(fixed));
}

void Clock::restart() noexcept {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  epoch_usec_ = std::chrono::duration_cast<std::chrono::microseconds>(wall).count();
  start_nanoseconds_ = steady_nanoseconds();
}

void Clock::set(double seconds) noexcept {
  set_to_ = seconds;
  virtual_ = true;
}

double Clock::now() const noexcept {
  if (virtual_.load()) return set_to_.load();
  return static_cast<double>(steady_nanoseconds() - start_nanoseconds_.load()) / 1e9;
}

}  // namespace gpumeter::fake_nvml
