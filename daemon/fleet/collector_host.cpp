#include "daemon/fleet/collector_host.hpp"

#include <cmath>

namespace gpumeter {

double stagger_of(unsigned lane) noexcept {
  constexpr double kGoldenRatio = 0.6180339887498949;
  const double place = (lane + 1) * kGoldenRatio;
  return place - std::floor(place);
}

}  // namespace gpumeter
