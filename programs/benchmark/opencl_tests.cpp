#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string>

#include "programs/benchmark/matrix.hpp"
#include "programs/benchmark/measure.hpp"
#include "programs/benchmark/opencl.hpp"

namespace gpumeter::benchmark::opencl {
namespace {

// OpenCL C 1.2 of the tests.

/// c = a * b for square matrices by rows. T: type of the factors, ACC: of the sums and of c; ACC16 and
/// TO_ACC16: its vector. The size is a multiple of 64.
///
/// gemm_tiled is for GPUs: a group of 16 x 16 work-items computes 64 x 64 elements from tiles in local
/// memory, each work-item 4 x 4. gemm_direct is for devices whose local memory is the same as the rest, and
/// whose work-items are vectors: each computes 4 rows of 16 columns.
constexpr const char* kGemmSource = R"(
#ifdef NEEDS_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef NEEDS_FP16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void gemm_tiled(uint n, global const T* restrict a, global const T* restrict b, global ACC* restrict c) {
  local T as[16][64 + 1];
  local T bs[16][64];
  const uint x = get_local_id(0), y = get_local_id(1), item = y * 16 + x;
  const uint row = get_group_id(1) * 64, column = get_group_id(0) * 64;
  ACC sums[4][4];
  for (uint i = 0; i < 4; ++i)
    for (uint j = 0; j < 4; ++j) sums[i][j] = 0;
  for (uint first = 0; first < n; first += 16) {
    for (uint i = 0; i < 4; ++i) {
      const uint place = item + i * 256;
      as[place % 16][place / 16] = a[(row + place / 16) * n + first + place % 16];
      bs[place / 64][place % 64] = b[(first + place / 64) * n + column + place % 64];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < 16; ++k) {
      ACC right[4];
      for (uint j = 0; j < 4; ++j) right[j] = (ACC)bs[k][x + 16 * j];
      for (uint i = 0; i < 4; ++i) {
        const ACC left = (ACC)as[k][y + 16 * i];
        for (uint j = 0; j < 4; ++j) sums[i][j] += left * right[j];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (uint i = 0; i < 4; ++i)
    for (uint j = 0; j < 4; ++j) c[(row + y + 16 * i) * n + column + x + 16 * j] = sums[i][j];
}

kernel void gemm_direct(uint n, global const T* restrict a, global const T* restrict b, global ACC* restrict c) {
  const uint row = get_global_id(0) * 4, column = get_global_id(1) * 16;
  global const T* const left = a + row * n;
  ACC16 sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
  for (uint k = 0; k < n; ++k) {
    const ACC16 right = TO_ACC16(vload16(0, b + k * n + column));
    sum0 += (ACC)left[k] * right;
    sum1 += (ACC)left[k + n] * right;
    sum2 += (ACC)left[k + 2 * n] * right;
    sum3 += (ACC)left[k + 3 * n] * right;
  }
  vstore16(sum0, 0, c + row * n + column);
  vstore16(sum1, 0, c + (row + 1) * n + column);
  vstore16(sum2, 0, c + (row + 2) * n + column);
  vstore16(sum3, 0, c + (row + 3) * n + column);
}
)";

/// Memory is filled with pattern(place, seed). Sums of unsigned numbers are exact in each order. Each
/// work-item works on one uint4, except those of `read_all`, which add kReadsPerItem of them.
constexpr const char* kMemorySource = R"(
uint4 pattern(uint place, uint seed) { return ((uint4)(4, 3, 2, 1) + place * 4) * 2654435761u + seed; }

kernel void write_all(global uint4* restrict to, uint seed) {
  const uint i = get_global_id(0);
  to[i] = pattern(i, seed);
}
kernel void copy_all(global const uint4* restrict from, global uint4* restrict to) {
  const uint i = get_global_id(0);
  to[i] = from[i];
}
kernel void triad(global const uint4* restrict b, global const uint4* restrict c, global uint4* restrict a, uint scalar) {
  const uint i = get_global_id(0);
  a[i] = b[i] + scalar * c[i];
}
kernel void read_all(global const uint4* restrict from, global uint* restrict sums) {
  const uint start = get_group_id(0) * get_local_size(0) * READS + get_local_id(0);
  uint4 sum = 0;
  for (uint k = 0; k < READS; ++k) sum += from[start + k * get_local_size(0)];
  sums[get_global_id(0)] = sum.x + sum.y + sum.z + sum.w;
}
/// Counts the places whose memory is not first(place) + scalar * second(place).
kernel void count_wrong(global const uint4* restrict memory, uint first, uint scalar, uint second, global uint* restrict wrong) {
  const uint i = get_global_id(0);
  const uint4 expected = scalar == 0 ? pattern(i, first) : pattern(i, first) + scalar * pattern(i, second);
  if (any(memory[i] != expected)) atomic_inc(wrong);
}
kernel void flip(global uint* memory, uint place, uint bit) { memory[place] ^= bit; }
)";
constexpr unsigned kReadsPerItem = 16;

/// All that a test needs. It adds its results to `outcome`.
struct Bench {
  Session& session;
  const Device& device;
  const Pace& pace;
  Faults faults = {};
  Outcome& outcome;

  /// A test that did not end: by the session's error, or because the time was over.
  void ended_early(const std::string& test) {
    if (!session.good()) {
      outcome.failures.push_back(test + ": " + session.problem());
    } else if (pace.is_over()) {
      outcome.notes.push_back(test + ": not measured, because the time was over");
    } else {
      outcome.notes.push_back(test + ": not measured, because the device reports no time of its work");
    }
    session.clear();
  }
  void measured(Quantity quantity, const std::string& kind, double amount, const Sample& sample) {
    outcome.add(quantity, kind, "opencl", amount, sample);
  }
};

/// The most memory of a test's buffers, on the device and on the host each.
constexpr std::size_t kMostMemory = std::size_t{768} << 20U;

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

/// Flips kFaultBit of the word at `place`, counted in 4 bytes.
void flip(Session& session, const Buffer& buffer, cl_uint place) {
  const Kernel kernel = session.kernel(kMemorySource, options(), "flip");
  session.set(kernel, buffer.get(), place, kFaultBit);
  session.run(kernel, {});
}

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

/// Reads, writes, copies and triads of the device's memory.
void measure_memory(Bench& bench) {
  MemoryTest test(bench);
  if (!bench.session.good()) return bench.ended_early("memory");
  test.run();
}

/// A data type as the kernels and the verification have it.
struct Type {
  const char* name;
  Element factor, sum;
  const char* extension;  ///< empty: part of OpenCL
  const char* options;
  double rounding;
};

constexpr Type kTypes[] = {
    {"fp32", Element::fp32, Element::fp32, "",
     "-DT=float -DACC=float -DACC16=float16 -DTO_ACC16=convert_float16", kFp32Rounding},
    {"fp16", Element::fp16, Element::fp32, "cl_khr_fp16",
     "-DNEEDS_FP16 -DT=half -DACC=float -DACC16=float16 -DTO_ACC16=convert_float16", kFp32Rounding},
    {"fp64", Element::fp64, Element::fp64, "cl_khr_fp64",
     "-DNEEDS_FP64 -DT=double -DACC=double -DACC16=double16 -DTO_ACC16=convert_double16", kFp64Rounding},
    {"int8", Element::int8, Element::int32, "", "-DT=char -DACC=int -DACC16=int16 -DTO_ACC16=convert_int16",
     kExact},
};

struct Variant {
  const char* kernel;
  Range (*range)(std::size_t size);
};
constexpr Variant kVariants[] = {
    {"gemm_tiled",
     [](std::size_t size) {
       return Range{size / 4, size / 4, 16, 16};
     }},
    {"gemm_direct",
     [](std::size_t size) {
       return Range{size / 4, size / 16, 0, 0};
     }},
};

constexpr std::size_t kSmallest = 256;
constexpr std::size_t kLargest = 4096;
constexpr std::uint64_t kSeedA = 1;
constexpr std::uint64_t kSeedB = 2;

/// The matrices of one size, on the host and on the device.
struct Matrices {
  std::size_t size;
  std::vector<std::byte> a, b;
  Buffer on_device_a, on_device_b, product;

  Matrices(Session& session, const Type& type, std::size_t n)
      : size(n),
        a(normal_elements(type.factor, n * n, kSeedA)),
        b(normal_elements(type.factor, n * n, kSeedB)),
        on_device_a(session.buffer(a.size(), CL_MEM_READ_ONLY)),
        on_device_b(session.buffer(b.size(), CL_MEM_READ_ONLY)),
        product(session.buffer(n * n * size_of(type.sum))) {
    session.write(on_device_a, a.data(), a.size());
    session.write(on_device_b, b.data(), b.size());
  }
  std::optional<double> multiply(Session& session, const Kernel& kernel, const Variant& variant) const {
    session.set(kernel, static_cast<cl_uint>(size), on_device_a.get(), on_device_b.get(), product.get());
    return session.run(kernel, variant.range(size));
  }
};

struct Chosen {
  const Variant* variant = nullptr;
  Kernel kernel;
  double seconds = 0;  ///< of the smallest size
};

bool fits(const Variant& variant, const Device& device) {
  const Range range = variant.range(kSmallest);
  return range.local_columns * range.local_rows <= device.largest_group &&
         (range.local_columns == 0 || device.local_memory >= std::size_t{20} << 10U);  // 16.1 KiB for fp64
}

/// The kernel that is faster on this device.
std::optional<Chosen> choose(Bench& bench, const Type& type) {
  const Matrices matrices(bench.session, type, kSmallest);
  std::optional<Chosen> best;
  for (const Variant& variant : kVariants) {
    if (!fits(variant, bench.device)) continue;
    Kernel kernel = bench.session.kernel(kGemmSource, type.options, variant.kernel);
    matrices.multiply(bench.session, kernel, variant);  // the first call compiles
    const std::optional<double> seconds = matrices.multiply(bench.session, kernel, variant);
    if (!bench.session.good() || !seconds) return std::nullopt;
    if (!best || *seconds < best->seconds) best = Chosen{&variant, std::move(kernel), *seconds};
  }
  return best;
}

/// The largest size whose launch is short enough: twice the size takes eight times as long, or less.
std::size_t fitting_size(Bench& bench, const Type& type, const Chosen& chosen) {
  std::size_t size = kSmallest;
  double seconds = chosen.seconds;
  while (size < kLargest && seconds * 8 < kLongestLaunchSeconds / 2 && !bench.pace.is_over()) {
    const Matrices matrices(bench.session, type, size * 2);
    const std::optional<double> took = matrices.multiply(bench.session, chosen.kernel, *chosen.variant);
    if (!took) return size;
    size *= 2;
    seconds = *took;
  }
  return size;
}

/// One more run, whose result the host checks. The memory has no number in it before, so a kernel that writes
/// nothing is found too.
void verify(Bench& bench, const Type& type, const Chosen& chosen, const Matrices& matrices) {
  const std::size_t bytes = matrices.size * matrices.size * size_of(type.sum);
  bench.session.fill(matrices.product, 0xffffffff, bytes);
  matrices.multiply(bench.session, chosen.kernel, *chosen.variant);
  if (bench.faults.gemm) flip(bench.session, matrices.product, static_cast<cl_uint>(bytes / 8 - 1) | 1U);
  std::vector<std::byte> product(bytes);
  bench.session.read(matrices.product, product.data(), bytes);
  const std::string test = std::string("gemm ") + type.name;
  if (!bench.session.good()) return bench.ended_early(test);
  const auto wrong = wrong_product(by_rows(matrices.a, type.factor, matrices.size),
                                   by_rows(matrices.b, type.factor, matrices.size),
                                   by_rows(product, type.sum, matrices.size), type.rounding);
  if (wrong) bench.outcome.failures.push_back(test + ": " + *wrong);
}

void measure_type(Bench& bench, const Type& type) {
  const std::string test = std::string("gemm ") + type.name;
  const std::optional<Chosen> chosen = choose(bench, type);
  if (!chosen) return bench.ended_early(test);
  const Matrices matrices(bench.session, type, fitting_size(bench, type, *chosen));
  const std::optional<Sample> sample =
      repeat(bench.pace, [&] { return matrices.multiply(bench.session, chosen->kernel, *chosen->variant); });
  if (!sample) return bench.ended_early(test);
  bench.measured(Quantity::flops, type.name, operations_of_product(matrices.size), *sample);
  verify(bench, type, *chosen, matrices);
}

/// Matrix multiplication in all data types of the device. 2 * n^3 operations.
void measure_gemm(Bench& bench) {
  for (const Type& type : kTypes) {
    if (*type.extension != '\0' && !bench.device.has(type.extension)) {
      bench.outcome.notes.push_back(std::string("gemm ") + type.name + ": the device lacks " +
                                    type.extension);
    } else {
      measure_type(bench, type);
    }
  }
}

constexpr std::size_t kBytes = std::size_t{64} << 20U;
constexpr cl_uint kOther = 0xa5a5a5a5;  ///< what memory holds before it is written

/// Memory of the host that the driver allocated and pinned, mapped while it is in use.
class Pinned {
 public:
  Pinned(Session& session, std::size_t bytes)
      : session_(session),
        buffer_(session.buffer(bytes, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR)),
        memory_(session.map(buffer_, bytes)) {}
  ~Pinned() { session_.unmap(buffer_, memory_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  cl_uint* words() const noexcept { return static_cast<cl_uint*>(memory_); }

 private:
  Session& session_;
  Buffer buffer_;
  void* memory_;
};

/// Between the device and memory of the host that the driver pinned. If the session has a second device, also
/// from the first to the second.
class TransferTest {
 public:
  explicit TransferTest(Bench& bench)
      : bench_(bench),
        session_(bench.session),
        from_(session_, kBytes),
        to_(session_, kBytes),
        memory_(session_.buffer(kBytes)),
        peer_(session_.buffer(kBytes)) {}

  void run(bool has_peer) {
    if (!session_.good()) return bench_.ended_early("transfer");
    for (cl_uint i = 0; i < kWords; ++i) from_.words()[i] = i * 2654435761U;
    session_.fill(memory_, kOther, kBytes);
    const bool is_sent =
        measure("host_to_device", [&] { return session_.write(memory_, from_.words(), kBytes); });
    if (!is_sent) return;
    std::fill_n(to_.words(), kWords, kOther);
    if (bench_.faults.transfer) flip(session_, memory_, kWords / 2);
    if (measure("device_to_host", [&] { return session_.read(memory_, to_.words(), kBytes); }))
      check("device_to_host");
    if (!has_peer) return;
    session_.fill(peer_, kOther, kBytes, 1);  // so that it is the second device's
    if (!measure("device_to_device", [&] { return session_.copy(memory_, peer_, kBytes); })) return;
    std::fill_n(to_.words(), kWords, kOther);
    session_.read(peer_, to_.words(), kBytes);
    check("device_to_device");
  }

 private:
  static constexpr cl_uint kWords = kBytes / sizeof(cl_uint);

  template <class Once>
  bool measure(const char* direction, Once once) {
    const auto sample = repeat(bench_.pace, once);
    if (!sample) {
      bench_.ended_early(std::string("transfer ") + direction);
      return false;
    }
    bench_.measured(Quantity::transfer, direction, kBytes, *sample);
    return true;
  }

  void check(const std::string& direction) {
    if (!session_.good()) return bench_.ended_early("transfer " + direction);
    if (std::memcmp(from_.words(), to_.words(), kBytes) == 0) return;
    const auto [first, second] = std::mismatch(from_.words(), from_.words() + kWords, to_.words());
    bench_.outcome.failures.push_back("transfer " + direction + ": word " +
                                      std::to_string(first - from_.words()) + " of " +
                                      std::to_string(kWords) + " came back changed");
  }

  Bench& bench_;
  Session& session_;
  const Pinned from_, to_;
  const Buffer memory_, peer_;
};

/// AMD's older extension has no domain, so a second function of that number is no match.
bool is_chosen(const Choice& choice, const Device& device) {
  return choice.is_cpu ? device.is_cpu : !device.is_cpu && device.address == choice.address;
}

bool is_idle_peer(const Choice& choice, const Device& device) {
  if (choice.is_cpu) return device.is_cpu;
  return device.address && std::ranges::find(choice.idle_peers, *device.address) != choice.idle_peers.end();
}

/// The chosen device, and after it a peer of the same driver if there is one.
std::vector<Device> chosen_devices(const Choice& choice, const std::vector<Device>& all) {
  const auto found = std::ranges::find_if(all, [&](const Device& each) { return is_chosen(choice, each); });
  if (found == all.end()) return {};
  std::vector<Device> chosen{*found};
  const auto peer = std::ranges::find_if(all, [&](const Device& each) {
    return each.id != found->id && each.platform == found->platform && is_idle_peer(choice, each);
  });
  if (peer != all.end()) chosen.push_back(*peer);
  return chosen;
}

template <class Use>
void with_session(const Api& api, const std::vector<Device>& devices, Outcome& outcome, Use use) {
  Session session(api, devices);
  if (session.good()) return use(session);
  outcome.failures.push_back("opencl: " + session.problem());
}

}  // namespace

void measure(const Choice& choice, const Pace& pace, Outcome& outcome) {
  const Result<Api> api = Api::open();
  if (!api) return outcome.notes.push_back("opencl: " + api.error().message());
  const std::vector<Device> chosen = chosen_devices(choice, devices(*api));
  if (chosen.empty()) {
    outcome.notes.emplace_back("opencl: no driver in /etc/OpenCL/vendors has this device");
    return;
  }
  const Device& device = chosen[0];
  outcome.facts.push_back({"opencl_device", device.name});
  outcome.facts.push_back({"opencl", device.platform_name + " " + device.driver});
  with_session(*api, {device}, outcome, [&](Session& session) {
    Bench bench{session, device, pace, faults_of_environment(), outcome};
    measure_memory(bench);
    measure_gemm(bench);
  });
  with_session(*api, chosen, outcome, [&](Session& session) {
    Bench bench{session, device, pace, faults_of_environment(), outcome};
    TransferTest(bench).run(chosen.size() > 1);
  });
}

}  // namespace gpumeter::benchmark::opencl
