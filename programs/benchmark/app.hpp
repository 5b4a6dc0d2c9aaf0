#pragma once

#include "programs/benchmark/options.hpp"

namespace gpumeter::benchmark {

/// Exit codes of the program. The service counts 3 and 4 as success.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;       ///< a wrong result, or the program could not work
inline constexpr int kExitGaveWay = 3;      ///< every GPU that was begun was needed by another process
inline constexpr int kExitNotMeasured = 4;  ///< no GPU was free

/// Measures the GPUs one after the other, those with the oldest result first, and prints, sends and keeps the
/// results. Ends at the latest 80 s after its start; GPUs that are left are first next time. Main thread; the
/// process must have no other thread, because it forks.
int run(const Options& options);

}  // namespace gpumeter::benchmark
