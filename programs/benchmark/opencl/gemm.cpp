#include <algorithm>
#include <array>
#include <string>

#include "programs/benchmark/measure/element.hpp"
#include "programs/benchmark/measure/verify.hpp"
#include "programs/benchmark/opencl/kernels.hpp"
#include "programs/benchmark/opencl/test.hpp"

namespace gpumeter::benchmark::opencl {
namespace {

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

double operations(std::size_t size) {
  const auto n = static_cast<double>(size);
  return 2 * n * n * n;
}

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
  bench.measured(Quantity::flops, type.name, operations(matrices.size), *sample);
  verify(bench, type, *chosen, matrices);
}

}  // namespace

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

}  // namespace gpumeter::benchmark::opencl
