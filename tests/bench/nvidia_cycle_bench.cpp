// Compares a fast pass over 8 GPUs with the same bare calls into the fake NVML, in CPU time
// (tests/fixtures/nvidia/h100_8.yaml). Both wait 120 ms between two rounds, because GPM samples must be
// apart. The fake's time advances by a second each round. Also prints the number of calls of each tier.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <thread>
#include <vector>

#include "collectors/nvidia/collector.hpp"
#include "tests/bench/nvidia_bare_calls.hpp"
#include "tests/fakes/nvml/fake_nvml.hpp"

namespace gpumeter::nvidia {
namespace {

constexpr auto kApart = std::chrono::milliseconds(120);

/// The fake's own functions, from the library that the collector loads.
struct Fake {
  void* library = ::dlopen(GPUMETER_FAKE_NVML, RTLD_NOW);
  decltype(&fake_nvml_set_time) set_time = symbol<decltype(&fake_nvml_set_time)>("fake_nvml_set_time");
  decltype(&fake_nvml_calls) calls = symbol<decltype(&fake_nvml_calls)>("fake_nvml_calls");

  template <class Function>
  Function symbol(const char* name) const {
    return reinterpret_cast<Function>(::dlsym(library, name));
  }
};
const Fake& fake() {
  static const Fake the;
  return the;
}

double cpu_seconds() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

/// Runs `pass` for each iteration of the benchmark. Between two runs the fake's time advances by a second and
/// real time by kApart.
template <class Pass>
void measure(benchmark::State& state, double first, Pass pass) {
  double now = first;
  std::uint64_t calls = 0;
  for (auto _ : state) {
    std::this_thread::sleep_for(kApart);
    fake().set_time(++now);
    const std::uint64_t before = fake().calls("all");
    const double began = cpu_seconds();
    pass(now);
    state.SetIterationTime(cpu_seconds() - began);
    calls += fake().calls("all") - before;
  }
  state.counters["calls"] =
      benchmark::Counter(static_cast<double>(calls), benchmark::Counter::kAvgIterations);
}

/// One device with its slots, as its lane holds it.
struct Sampled {
  std::unique_ptr<Device> device;
  std::vector<double> values;
  std::vector<ReadStatus> statuses;
};

std::vector<Sampled> attach_all(Collector& collector) {
  std::vector<Sampled> gpus;
  const Discovery found = *collector.discover();
  for (const DeviceInfo& info : found.devices) {
    Sampled gpu{collector.device(info), {}, {}};
    if (!gpu.device->attach(info)) std::abort();
    gpu.values.resize(gpu.device->series().size());
    gpu.statuses.resize(gpu.values.size());
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

double start_of_time = 10;  // each benchmark starts after all others, so that no buffer holds older samples

void BM_cycle(benchmark::State& state, Tier tier) {
  fake().set_time(start_of_time += 1000);
  const SystemClock clock;
  const std::unique_ptr<Collector> collector =
      *open_nvidia({"/nonexistent", "/proc", &clock, {{"library", {GPUMETER_FAKE_NVML}}}});
  std::vector<Sampled> gpus = attach_all(*collector);
  measure(state, start_of_time, [&](double now) {
    const Nanoseconds at = std::chrono::seconds(static_cast<long>(now));
    for (Sampled& gpu : gpus) {
      SampleSink sink(gpu.values, gpu.statuses);
      benchmark::DoNotOptimize(gpu.device->sample({tier, at, std::chrono::seconds(1)}, sink));
    }
  });
}

void bare_fast(benchmark::State& state) {
  fake().set_time(start_of_time += 1000);
  BareCalls bare(GPUMETER_FAKE_NVML);
  measure(state, start_of_time, [&](double) { bare.fast_pass(); });
}

BENCHMARK_CAPTURE(BM_cycle, fast, Tier::fast)->Unit(benchmark::kMicrosecond)->UseManualTime()->Iterations(20);
BENCHMARK(bare_fast)->Unit(benchmark::kMicrosecond)->UseManualTime()->Iterations(20);
BENCHMARK_CAPTURE(BM_cycle, normal, Tier::normal)
    ->Unit(benchmark::kMicrosecond)
    ->UseManualTime()
    ->Iterations(3);
BENCHMARK_CAPTURE(BM_cycle, slow, Tier::slow)->Unit(benchmark::kMicrosecond)->UseManualTime()->Iterations(3);

}  // namespace
}  // namespace gpumeter::nvidia

int main(int argc, char** argv) {
  ::setenv("FAKE_NVML_SCENARIO", GPUMETER_SCENARIO, 0);  // NOLINT(concurrency-mt-unsafe): no thread yet
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
