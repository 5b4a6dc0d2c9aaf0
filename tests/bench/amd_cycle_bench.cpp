// Compares a sampling cycle of 8 AMD cards with a bare loop of the same preads, on a sysfs tree in memory.
// System calls are cheap there, so the ratio is the worst case: real files call a driver.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "collectors/amd/collector.hpp"
#include "tests/fakes/amd_machine.hpp"
#include "tests/fakes/real_clock.hpp"

namespace gpumeter::amd {
namespace {

constexpr int kCards = 8;

// The files that the rows of a tier read of one card after attach(). Constants are not read again.
constexpr std::string_view kFastFiles[] = {"power/runtime_status",
                                           "gpu_busy_percent",
                                           "mem_busy_percent",
                                           "hwmon/hwmon1/power1_average",
                                           "hwmon/hwmon1/in0_input",
                                           "hwmon/hwmon1/temp1_input",
                                           "hwmon/hwmon1/temp2_input",
                                           "hwmon/hwmon1/temp3_input",
                                           "hwmon/hwmon1/freq1_input",
                                           "hwmon/hwmon1/freq2_input",
                                           "gpu_metrics"};
constexpr std::string_view kNormalFiles[] = {"power/runtime_status", "mem_info_vram_used",
                                             "mem_info_gtt_used",    "mem_info_vis_vram_used",
                                             "hwmon/hwmon1/pwm1",    "hwmon/hwmon1/fan1_input"};

/// Returns the read system calls of this process so far, as the kernel counts them. The call itself adds a
/// few.
std::uint64_t reads_so_far() {
  std::ifstream file("/proc/self/io");
  std::string key;
  std::uint64_t value = 0;
  while (file >> key >> value) {
    if (key == "syscr:") return value;
  }
  return 0;
}

/// Shows the number of reads in each iteration, as proof that both sides make the same number.
class ReadCounter {
 public:
  explicit ReadCounter(benchmark::State& state) : state_(state), before_(reads_so_far()) {}
  ~ReadCounter() {
    const auto reads = static_cast<double>(reads_so_far() - before_);
    state_.counters["reads"] = benchmark::Counter(reads, benchmark::Counter::kAvgIterations);
  }
  ReadCounter(const ReadCounter&) = delete;
  ReadCounter& operator=(const ReadCounter&) = delete;

 private:
  benchmark::State& state_;
  std::uint64_t before_;
};

/// One device with its slots, as its lane holds it.
struct Sampled {
  std::unique_ptr<Device> device;
  std::vector<double> values;
  std::vector<ReadStatus> statuses;
};

std::vector<Sampled> attach_all(Collector& collector) {
  std::vector<Sampled> cards;
  const Discovery found = *collector.discover();
  for (const DeviceInfo& info : found.devices) {
    Sampled card{collector.device(info), {}, {}};
    if (!card.device->attach(info)) std::abort();
    card.values.resize(card.device->series().size());
    card.statuses.resize(card.values.size());
    cards.push_back(std::move(card));
  }
  return cards;
}

void BM_cycle(benchmark::State& state, Tier tier) {
  const std::unique_ptr<Tree> machine = make_radeon_machine(kCards);
  const std::unique_ptr<Collector> collector = *open_amd({machine->path(), "/proc", &kRealClock, {}});
  std::vector<Sampled> cards = attach_all(*collector);
  Nanoseconds now{0};
  const ReadCounter reads(state);
  for (auto _ : state) {
    now += std::chrono::seconds(1);
    for (Sampled& card : cards) {
      SampleSink sink(card.values, card.statuses);
      benchmark::DoNotOptimize(card.device->sample({tier, now, std::chrono::seconds(1)}, sink));
    }
  }
}

template <std::size_t N>
void BM_bare(benchmark::State& state, const std::string_view (&names)[N]) {
  const std::unique_ptr<Tree> machine = make_radeon_machine(kCards);
  std::vector<int> descriptors;
  for (int i = 0; i < kCards; ++i) {
    const std::string folder = *machine / radeon_folder(i);
    for (const std::string_view name : names) {
      const std::string path = folder + std::string(name);
      descriptors.push_back(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (descriptors.back() < 0) state.SkipWithError(path.c_str());
    }
  }
  std::array<char, 4096> buffer{};
  {
    const ReadCounter reads(state);
    for (auto _ : state) {
      for (const int descriptor : descriptors) {
        benchmark::DoNotOptimize(::pread(descriptor, buffer.data(), buffer.size(), 0));
      }
    }
  }
  for (const int descriptor : descriptors) ::close(descriptor);
}

void bare_fast(benchmark::State& state) { BM_bare(state, kFastFiles); }
void bare_normal(benchmark::State& state) { BM_bare(state, kNormalFiles); }

BENCHMARK_CAPTURE(BM_cycle, fast, Tier::fast)->Unit(benchmark::kMicrosecond);
BENCHMARK(bare_fast)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_cycle, normal, Tier::normal)->Unit(benchmark::kMicrosecond);
BENCHMARK(bare_normal)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace gpumeter::amd

int main(int argc, char** argv) {
  // Puts the tree in memory; otherwise the benchmark measures a disk.
  ::setenv("TMPDIR", "/dev/shm", 0);  // NOLINT(concurrency-mt-unsafe): no thread yet
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
