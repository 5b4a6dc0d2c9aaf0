#include "collectors/nvidia/readers/growth.hpp"

#include <utility>

namespace gpumeter::nvidia {

double Growth::of(double raw) noexcept {
  const double last = std::exchange(last_, raw);
  return std::exchange(has_last_, true) && raw > last ? raw - last : 0;
}

}  // namespace gpumeter::nvidia
