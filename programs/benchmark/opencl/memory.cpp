#include <algorithm>
#include <numeric>

#include "programs/benchmark/measure/caches.hpp"
#include "programs/benchmark/opencl/kernels.hpp"
#include "programs/benchmark/opencl/test.hpp"

namespace gpumeter::benchmark::opencl {
namespace {

constexpr cl_uint kFirstSeed = 17;
constexpr cl_uint kSecondSeed = 4711;
constexpr cl_uint kScalar = 3;
constexpr std::size_t kItem = 16;  // uint4
constexpr std::size_t kGroup = 256;

/// Three buffers of this size: larger than caches, and within the memory of the device and the test's limit.
/// A GPU's caches have up to 256 MiB; a host's processor says how much its caches have.
std::size_t buffer_size(const Device& device) {
  const std::size_t wanted = device.is_cpu ? size_above_caches("/sys") : kMostMemory / 3;
  const std::size_t possible = std::min<std::size_t>({wanted, device.memory / 8, device.largest_buffer});
  return possible / (std::size_t{1} << 20U) * (std::size_t{1} << 20U);
}

std::string options() { return "-DREADS=" + std::to_string(kReadsPerItem); }

/// The sum of pattern(place, seed) over all places, modulo 2^32.
cl_uint expected_sum(std::size_t items, cl_uint seed) {
  cl_uint sum = 0;
  for (cl_uint place = 0; place < items; ++place) sum += (10 + 16 * place) * 2654435761U + 4 * seed;
  return sum;
}

class MemoryTest {
 public:
  explicit MemoryTest(Bench& bench)
      : bench_(bench),
        session_(bench.session),
        bytes_(buffer_size(bench.device)),
        items_(bytes_ / kItem),
        a_(session_.buffer(bytes_)),
        b_(session_.buffer(bytes_)),
        c_(session_.buffer(bytes_)),
        wrong_(session_.buffer(sizeof(cl_uint))),
        count_(kernel("count_wrong")) {}

  void run() {
    measure_write();
    measure_copy();
    measure_triad();
    measure_read();
  }

 private:
  Kernel kernel(const char* name) { return session_.kernel(kMemorySource, options(), name); }
  Range all() const { return {items_, 1, std::min(kGroup, bench_.device.largest_group), 1}; }

  template <class Check>
  void measure(const char* operation, const Kernel& kernel, const Range& range, double bytes, Check check) {
    const std::string test = std::string("memory ") + operation;
    const auto sample = repeat(bench_.pace, [&] { return session_.run(kernel, range); });
    if (!sample) return bench_.ended_early(test);
    bench_.measured(Quantity::memory_bandwidth, operation, bytes, *sample);
    const std::string problem = check();
    if (!session_.good()) return bench_.ended_early(test);
    if (!problem.empty()) bench_.outcome.failures.push_back(test + ": " + problem);
  }

  /// Compares a buffer with first + scalar * second.
  std::string compare(const Buffer& buffer, cl_uint first, cl_uint scalar, cl_uint second) {
    if (bench_.faults.memory) flip(session_, buffer, static_cast<cl_uint>(bytes_ / 8));
    session_.fill(wrong_, 0, sizeof(cl_uint));
    session_.set(count_, buffer.get(), first, scalar, second, wrong_.get());
    session_.run(count_, all());
    cl_uint wrong = 1;
    session_.read(wrong_, &wrong, sizeof wrong);
    return wrong == 0 ? "" : std::to_string(wrong) + " of " + std::to_string(items_) + " places are wrong";
  }

  void measure_write() {
    const Kernel write = kernel("write_all");
    session_.set(write, b_.get(), kFirstSeed);
    measure("write", write, all(), static_cast<double>(bytes_),
            [&] { return compare(b_, kFirstSeed, 0, 0); });
    if (bench_.faults.memory) session_.run(write, all());  // the next test begins with the right pattern
  }
  void measure_copy() {
    const Kernel copy = kernel("copy_all");
    session_.set(copy, b_.get(), c_.get());
    measure("copy", copy, all(), 2 * static_cast<double>(bytes_),
            [&] { return compare(c_, kFirstSeed, 0, 0); });
  }
  void measure_triad() {
    const Kernel write = kernel("write_all");
    session_.set(write, c_.get(), kSecondSeed);
    session_.run(write, all());
    const Kernel triad = kernel("triad");
    session_.set(triad, b_.get(), c_.get(), a_.get(), kScalar);
    measure("triad", triad, all(), 3 * static_cast<double>(bytes_),
            [&] { return compare(a_, kFirstSeed, kScalar, kSecondSeed); });
  }
  void measure_read() {
    const std::size_t count = items_ / kReadsPerItem;
    const Buffer sums = session_.buffer(count * sizeof(cl_uint));
    const Kernel read = kernel("read_all");
    session_.set(read, b_.get(), sums.get());
    const Range range{count, 1, std::min(kGroup, bench_.device.largest_group), 1};
    measure("read", read, range, static_cast<double>(bytes_), [&]() -> std::string {
      if (bench_.faults.memory) flip(session_, b_, static_cast<cl_uint>(bytes_ / 8));
      session_.run(read, range);
      std::vector<cl_uint> found(count);
      session_.read(sums, found.data(), count * sizeof(cl_uint));
      const cl_uint sum = std::accumulate(found.begin(), found.end(), cl_uint{0});
      return sum == expected_sum(items_, kFirstSeed) ? "" : "the sum of what was read is wrong";
    });
  }

  Bench& bench_;
  Session& session_;
  const std::size_t bytes_;
  const std::size_t items_;
  const Buffer a_, b_, c_, wrong_;
  const Kernel count_;
};

}  // namespace

void flip(Session& session, const Buffer& buffer, cl_uint place) {
  const Kernel kernel = session.kernel(kMemorySource, options(), "flip");
  session.set(kernel, buffer.get(), place, kFaultBit);
  session.run(kernel, {});
}

void measure_memory(Bench& bench) {
  MemoryTest test(bench);
  if (!bench.session.good()) return bench.ended_early("memory");
  test.run();
}

}  // namespace gpumeter::benchmark::opencl
