#include "collectors/benchmark/work.hpp"

#include "collectors/benchmark/blas/run.hpp"
#include "collectors/benchmark/measure/fault.hpp"
#include "collectors/benchmark/measure/pace.hpp"
#include "collectors/benchmark/opencl/run.hpp"

namespace gpumeter::benchmark {

Outcome work_on(const Job& job) {
  const Pace pace(job.time);
  Outcome outcome;
  if (job.opencl && (job.is_cpu || job.address))
    opencl::measure({job.is_cpu, job.address.value_or(pci::Address{}), job.idle_peers}, pace, outcome);
  if (job.blas && job.address)
    blas::measure(job.library_paths, *job.address, pace, faults_of_environment(), outcome);
  return outcome;
}

}  // namespace gpumeter::benchmark
