#include "programs/benchmark/blas.hpp"

#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "programs/benchmark/matrix.hpp"

namespace gpumeter::benchmark::blas {

const void* Library::scalar(Type type, int value) noexcept {
  static constexpr double kDouble[] = {0, 1};
  static constexpr float kFloat[] = {0, 1};
  static constexpr std::int32_t kInt[] = {0, 1};
  if (type == Type::fp64) return kDouble + value;
  return type == Type::int8 ? static_cast<const void*>(kInt + value) : kFloat + value;
}

std::optional<double> Library::multiply(Type type, int size, const void* a, const void* b, void* c) {
  if (!good() || (type == Type::fp8 && !prepare_fp8(size))) return std::nullopt;
  mark(false);
  if (type == Type::fp8) {
    take(lt_->multiply(a, b, c));
  } else {
    enqueue(type, size, a, b, c);
  }
  mark(true);
  const float milliseconds = good() ? milliseconds_between_marks() : 0;
  return good() && !refused_ && milliseconds > 0 ? std::optional(static_cast<double>(milliseconds) * 1e-3)
                                                 : std::nullopt;
}

void Library::attach(Result<std::unique_ptr<Lt>> lt, Element fp8) {
  fp8_ = fp8;
  if (lt) {
    lt_ = *std::move(lt);
  } else {
    why_no_lt_ = lt.error().message();
  }
}

bool Library::take(const LtStatus& status) {
  if (status.is_refused) return refuse(status.call + " returned " + std::to_string(status.code)), false;
  return passes(status.code, status.call.c_str());
}

bool Library::prepare_fp8(int size) {
  if (lt_ == nullptr) return refuse(why_no_lt_), false;
  if (lt_memory_.workspace == nullptr) {
    lt_memory_ = {allocate(kLtWorkspace), allocate(sizeof(float))};
    upload(lt_memory_.one, scalar(Type::fp32, 1), sizeof(float));
  }
  return good() && take(lt_->prepare(size, lt_memory_));
}

void Library::end() {
  for (void* each : {lt_memory_.workspace, lt_memory_.one}) {
    if (each != nullptr) release(each);
  }
  lt_memory_ = {};
}

Result<std::unique_ptr<Lt>> open_lt(const std::vector<std::string>& folders,
                                    std::initializer_list<const char*> files, const LtDialect& dialect) {
  Result<DynamicLibrary> library = open_any(folders, files);
  if (!library) return library.error();
  auto lt = std::make_unique<Lt>(*std::move(library), dialect);
  if (const auto opened = lt->open(); !opened) return opened.error();
  return Result<std::unique_ptr<Lt>>(std::move(lt));
}

Result<DynamicLibrary> open_any(const std::vector<std::string>& folders,
                                std::initializer_list<const char*> files) {
  std::optional<Error> first;
  for (const char* file : files) {
    for (const std::string& folder : folders) {
      Result<DynamicLibrary> opened = DynamicLibrary::open(folder + "/" + file);
      if (opened) return opened;
    }
    Result<DynamicLibrary> opened = DynamicLibrary::open(file);
    if (opened) return opened;
    if (!first) first = opened.error();
  }
  return *first;
}

namespace {

struct Row {
  Type type;
  const char* name;
  Element factor, sum;
  double rounding;
};
constexpr Row kRows[] = {
    {Type::bf16, "bf16", Element::bf16, Element::fp32, kMatrixUnitRounding},
    {Type::fp16, "fp16", Element::fp16, Element::fp32, kMatrixUnitRounding},
    {Type::tf32, "tf32", Element::fp32, Element::fp32, kMatrixUnitRounding},
    {Type::fp32, "fp32", Element::fp32, Element::fp32, kFp32Rounding},
    {Type::fp64, "fp64", Element::fp64, Element::fp64, kFp64Rounding},
    {Type::int8, "int8", Element::int8, Element::int32, kExact},
    {Type::fp8, "fp8", Element::e4m3, Element::fp32, kExact},
};

Row suited(Row row, const Library& library) {
  if (row.type == Type::fp8) row.factor = library.fp8();
  return row;
}

constexpr std::size_t kSmallest = 256;
constexpr std::size_t kLargest = 8192;
/// Of all three matrices. A context takes some hundred MB more, and both together at most 1 GiB.
constexpr std::size_t kMostMemory = std::size_t{512} << 20U;

std::size_t memory_of(const Row& row, std::size_t size) {
  return size * size * (2 * size_of(row.factor) + size_of(row.sum));
}

/// Two factors and their product on the host and on the device.
class Matrices {
 public:
  Matrices(Library& library, const Row& row, std::size_t size)
      : library_(library),
        row_(row),
        size_(size),
        host_a_(normal_elements(row.factor, size * size, 1)),
        host_b_(normal_elements(row.factor, size * size, 2)),
        a_(library.allocate(host_a_.size())),
        b_(library.allocate(host_b_.size())),
        c_(library.allocate(product_bytes())) {
    library.upload(a_, host_a_.data(), host_a_.size());
    library.upload(b_, host_b_.data(), host_b_.size());
  }
  ~Matrices() {
    for (void* each : {a_, b_, c_}) library_.release(each);
  }
  Matrices(const Matrices&) = delete;
  Matrices& operator=(const Matrices&) = delete;

  std::optional<double> multiply() {
    return library_.multiply(row_.type, static_cast<int>(size_), a_, b_, c_);
  }

  /// One more product, whose result the host checks. The memory has no number in it before.
  std::optional<std::string> wrong(Faults faults) {
    std::vector<std::byte> product(product_bytes(), std::byte{0xff});
    library_.upload(c_, product.data(), product.size());
    multiply();
    if (faults.gemm) flip(product.size() / 8 | 1U);
    library_.download(product.data(), c_, product.size());
    if (!library_.good()) return library_.problem();
    return wrong_product(by_rows(host_a_, row_.factor, size_), by_columns(host_b_, row_.factor, size_),
                         by_columns(product, row_.sum, size_), row_.rounding);
  }

 private:
  std::size_t product_bytes() const { return size_ * size_ * size_of(row_.sum); }
  void flip(std::size_t word) {
    auto* const place = static_cast<std::byte*>(c_) + word * sizeof(std::uint32_t);
    std::uint32_t value = 0;
    library_.download(&value, place, sizeof value);
    value ^= kFaultBit;
    library_.upload(place, &value, sizeof value);
  }

  Library& library_;
  const Row& row_;
  const std::size_t size_;
  const std::vector<std::byte> host_a_, host_b_;
  void *a_, *b_, *c_;
};

/// The largest size whose product is short and small enough; nullopt: refused, an error, or the time is over.
std::optional<std::size_t> fitting_size(Library& library, const Row& row, const Pace& pace) {
  for (std::size_t size = kSmallest;; size *= 2) {
    if (pace.is_over()) return std::nullopt;
    Matrices matrices(library, row, size);
    matrices.multiply();  // the first call loads the kernel
    const std::optional<double> seconds = matrices.multiply();
    if (!seconds) return std::nullopt;
    const bool is_last = size * 2 > kLargest || memory_of(row, size * 2) > kMostMemory;
    if (is_last || *seconds * 8 > kLongestLaunchSeconds / 2) return size;
  }
}

void ended_early(Library& library, const std::string& test, Outcome& outcome) {
  if (library.refused()) {
    const std::string why = library.refusal().empty() ? "" : " (" + library.refusal() + ")";
    outcome.notes.push_back(test + ": the library does not have it on this device" + why);
  } else if (!library.good()) {
    outcome.failures.push_back(test + ": " + library.problem());
  } else {
    outcome.notes.push_back(test + ": not measured, because the time was over");
  }
  library.clear();
}

void measure_type(Library& library, const Row& row, const Pace& pace, Faults faults, Outcome& outcome) {
  const std::string test = std::string(library.backend(row.type)) + " " + row.name;
  const std::optional<std::size_t> size = fitting_size(library, row, pace);
  if (!size) return ended_early(library, test, outcome);
  Matrices matrices(library, row, *size);
  const std::optional<Sample> sample = repeat(pace, [&] { return matrices.multiply(); });
  if (!sample) return ended_early(library, test, outcome);
  const auto n = static_cast<double>(*size);
  const double operations = 2 * n * n * n;
  outcome.measurements.push_back(
      {Quantity::flops, row.name, library.backend(row.type), operations / sample->median,
       operations * sample->deviation / (sample->median * sample->median), sample->runs});
  if (const auto wrong = matrices.wrong(faults)) outcome.failures.push_back(test + ": " + *wrong);
  library.clear();
}

}  // namespace

void measure(const std::vector<std::string>& folders, const pci::Address& address, const Pace& pace,
             Faults faults, Outcome& outcome) {
  auto library = open_cublas(folders, address);
  if (!library) {
    outcome.notes.push_back("cublas: " + library.error().message());
    library = open_rocblas(folders, address);
  }
  if (!library) return outcome.notes.push_back("rocblas: " + library.error().message());
  for (Fact& fact : (*library)->facts()) outcome.facts.push_back(std::move(fact));
  for (const Row& row : kRows) measure_type(**library, suited(row, **library), pace, faults, outcome);
  (*library)->end();
}

}  // namespace gpumeter::benchmark::blas
