#include "programs/benchmark/work.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/duration.hpp"
#include "programs/benchmark/blas/run.hpp"
#include "programs/benchmark/measure/fault.hpp"
#include "programs/benchmark/measure/pace.hpp"
#include "programs/benchmark/opencl/run.hpp"

namespace gpumeter::benchmark {
namespace {

/// $GPUMETER_BENCHMARK_SLICE: the time of one test, such as 20ms, so that a test of the whole program
/// computes no longer than the fewest runs take. Not a flag, because rates of so few runs are of no use.
Pace::Clock::duration slice(Duration most) {
  const char* const text = std::getenv("GPUMETER_BENCHMARK_SLICE");
  const std::optional<Duration> shorter = parse_duration(text == nullptr ? "" : text);
  return std::min(Pace::share_of(most), Pace::Clock::duration(shorter.value_or(most)));
}

}  // namespace

Outcome work_on(const Job& job) {
  const Pace pace(job.time, slice(job.time));
  Outcome outcome;
  if (job.opencl && (job.is_cpu || job.address))
    opencl::measure({job.is_cpu, job.address.value_or(pci::Address{}), job.idle_peers}, pace, outcome);
  if (job.blas && job.address)
    blas::measure(job.library_paths, *job.address, pace, faults_of_environment(), outcome);
  return outcome;
}

}  // namespace gpumeter::benchmark
