#pragma once

#include "base/clock.hpp"

namespace gpumeter {

/// For tests whose threads wait in real time.
inline const SystemClock kRealClock;

}  // namespace gpumeter
