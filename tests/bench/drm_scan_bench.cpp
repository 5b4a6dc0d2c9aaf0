// Scans of the machine's own /proc for clients of DRM devices, as the daemon makes them.
//
// usage: bench_drm_scan SCANS
// Prints a JSON object: time of the first round over all processes and of a later scan, at the default
// interval (the pauses are skipped), and memory.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "collectors/sources/fdinfo/scanner.hpp"
#include "collectors/sources/fdinfo/watch.hpp"

namespace {

using namespace gpumeter;

/// The machine's time, plus the pauses between scans that are skipped.
class SkippingClock final : public Clock {
 public:
  Nanoseconds monotonic() const noexcept override { return real_.monotonic() + Nanoseconds(skipped_.load()); }
  Nanoseconds boottime() const noexcept override { return real_.boottime() + Nanoseconds(skipped_.load()); }
  Nanoseconds realtime() const noexcept override { return real_.realtime() + Nanoseconds(skipped_.load()); }
  void skip(Nanoseconds time) noexcept { skipped_ += time.count(); }

 private:
  SystemClock real_;
  std::atomic<std::int64_t> skipped_{0};
};

/// Of all threads of this process.
double cpu_milliseconds() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return of(use.ru_utime) + of(use.ru_stime);
}

long resident_kib() {
  long pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%*d %ld", &pages) != 1) return 0;
  std::fclose(file);
  return pages * ::sysconf(_SC_PAGESIZE) / 1024;
}

}  // namespace

int main(int count, char** arguments) {
  const int scans = count > 1 ? std::atoi(arguments[1]) : 120;
  SkippingClock clock;
  fdinfo::Scanner::Sources sources{"/proc", "/sys", nullptr};
  sources.clock = {std::shared_ptr<void>(), &clock};
  fdinfo::Scanner scanner(std::move(sources));
  const std::vector<std::string> devices = {"0000:00:00.0"};
  const long before = resident_kib();
  const double begun = cpu_milliseconds();
  int first_round = 0;
  double wall = 0;
  fdinfo::Scanner::Result result;
  while (!result.is_whole && first_round < 1000) {
    result = scanner.scan(devices, fdinfo::DeviceWatch::kEvery);
    wall += to_seconds(result.duration) * 1e3;
    ++first_round;
    clock.skip(std::chrono::seconds(1));
  }
  const double first_cpu = cpu_milliseconds() - begun;
  // Processes are looked at after growing pauses: the steady state begins after two minutes.
  for (int i = 0; i < 30; ++i) {
    clock.skip(fdinfo::DeviceWatch::kEvery);
    scanner.scan(devices, fdinfo::DeviceWatch::kEvery);
  }
  const double steady = cpu_milliseconds();
  double longest = 0;
  for (int i = 0; i < scans; ++i) {
    clock.skip(fdinfo::DeviceWatch::kEvery);
    result = scanner.scan(devices, fdinfo::DeviceWatch::kEvery);
    longest = std::max(longest, to_seconds(result.duration) * 1e3);
  }
  const double cpu = (cpu_milliseconds() - steady) / scans;
  const double interval = to_seconds(fdinfo::DeviceWatch::kEvery) * 1e3;
  std::printf(
      "{\"first_round_scans\": %d, \"first_round_wall_ms\": %.1f, \"first_round_cpu_ms\": %.1f, "
      "\"scan_cpu_ms\": %.2f, \"scan_longest_ms\": %.1f, \"core_percent\": %.3f, \"memory_kib\": %ld, "
      "\"inaccessible\": %u}\n",
      first_round, wall, first_cpu, cpu, longest, cpu / interval * 100, resident_kib() - before,
      result.inaccessible);
  return 0;
}
