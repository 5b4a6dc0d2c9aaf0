#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "programs/benchmark/blas/library.hpp"
#include "programs/benchmark/blas/lt_dialects.hpp"

// Declared from the facts of the ABI: hip_runtime_api.h (ROCm 5 to 7) and rocblas-types.h,
// rocblas-functions.h (rocBLAS 2.45 to 5). Enumerations are int.
namespace gpumeter::benchmark::blas {
namespace {

using Event = void*;   // hipEvent_t
using Handle = void*;  // rocblas_handle

#define GPUMETER_HIP(X)                                       \
  X(hipInit, int (*)(unsigned))                               \
  X(hipDeviceGetByPCIBusId, int (*)(int*, const char*))       \
  X(hipDeviceComputeCapability, int (*)(int*, int*, int))     \
  X(hipSetDevice, int (*)(int))                               \
  X(hipMalloc, int (*)(void**, std::size_t))                  \
  X(hipFree, int (*)(void*))                                  \
  X(hipMemcpy, int (*)(void*, const void*, std::size_t, int)) \
  X(hipEventCreate, int (*)(Event*))                          \
  X(hipEventRecord, int (*)(Event, void*))                    \
  X(hipEventSynchronize, int (*)(Event))                      \
  X(hipEventElapsedTime, int (*)(float*, Event, Event))
#define GPUMETER_ROCBLAS(X)                                                                             \
  X(rocblas_create_handle, int (*)(Handle*))                                                            \
  X(rocblas_get_version_string, int (*)(char*, std::size_t))                                            \
  X(rocblas_gemm_ex,                                                                                    \
    int (*)(Handle, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int, \
            const void*, const void*, int, int, void*, int, int, int, int, std::int32_t, std::uint32_t))

constexpr int kToDevice = 1;            // hipMemcpyHostToDevice
constexpr int kToHost = 2;              // hipMemcpyDeviceToHost
constexpr int kPlain = 111;             // rocblas_operation_none
constexpr int kTranspose = 112;         // rocblas_operation_transpose
constexpr int kNotImplemented = 2;      // rocblas_status_not_implemented
constexpr int kExcludedFromBuild = 14;  // rocblas_status_excluded_from_build
constexpr int kArchMismatch = 15;       // rocblas_status_arch_mismatch

struct Numbers {
  int factor, sum;  // rocblas_datatype; the sums are also the compute type
};
std::optional<Numbers> numbers_of(Type type) {
  switch (type) {
    case Type::fp64:
      return Numbers{152, 152};  // f64_r
    case Type::fp32:
      return Numbers{151, 151};  // f32_r
    case Type::tf32:
      return std::nullopt;  // only hipBLASLt has it
    case Type::fp16:
      return Numbers{150, 151};  // f16_r
    case Type::bf16:
      return Numbers{168, 151};  // bf16_r
    case Type::int8:
      return Numbers{160, 162};  // i8_r, i32_r
    case Type::fp8:
      return std::nullopt;  // only hipBLASLt has it
  }
  return std::nullopt;
}

class Rocblas final : public Library {
 public:
  Rocblas(DynamicLibrary driver, DynamicLibrary blas) : driver_(std::move(driver)), blas_(std::move(blas)) {}

  // NOLINTNEXTLINE(readability-function-size): one line a function of the tables
  Result<Done> open(const std::string& address) {
#define GPUMETER_LOAD(from, name, type) \
  name##_ = (from).symbol<type>(#name); \
  if (name##_ == nullptr) return Error("the library has no " #name);
#define GPUMETER_LOAD_HIP(name, type) GPUMETER_LOAD(driver_, name, type)
#define GPUMETER_LOAD_ROCBLAS(name, type) GPUMETER_LOAD(blas_, name, type)
    GPUMETER_HIP(GPUMETER_LOAD_HIP)
    GPUMETER_ROCBLAS(GPUMETER_LOAD_ROCBLAS)
    const bool is_open =
        passes(hipInit_(0), "hipInit") &&
        passes(hipDeviceGetByPCIBusId_(&device_, address.c_str()), "hipDeviceGetByPCIBusId") &&
        passes(hipSetDevice_(device_), "hipSetDevice") &&
        passes(rocblas_create_handle_(&handle_), "rocblas_create_handle") &&
        passes(hipEventCreate_(&begin_), "hipEventCreate") &&
        passes(hipEventCreate_(&end_), "hipEventCreate");
    if (!is_open) return Error(problem());
    return Done{};
  }

  const char* backend(Type type) const override { return type == Type::fp8 ? "hipblaslt" : "rocblas"; }
  std::vector<Fact> facts() override {
    std::array<char, 128> text{};
    rocblas_get_version_string_(text.data(), text.size() - 1);
    std::vector<Fact> all{{"rocblas", text.data()}};
    if (!fp8_version_.empty()) all.push_back({"hipblaslt", fp8_version_});
    return all;
  }
  /// Does nothing on devices without fp8.
  void add_fp8(const std::vector<std::string>& folders) {
    const std::optional<Element> encoding = fp8_of_device();
    if (!encoding) return;
    auto lt = open_lt(folders, {"libhipblaslt.so.1", "libhipblaslt.so.0"},
                      *encoding == Element::e4m3 ? kHipblasLt : kHipblasLtFnuz);
    if (lt) fp8_version_ = version_of(**lt);
    attach(std::move(lt), *encoding);
  }
  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    if (good()) passes(hipMalloc_(&memory, bytes), "hipMalloc");
    return memory;
  }
  void release(void* memory) override {
    if (memory != nullptr) passes(hipFree_(memory), "hipFree");
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    if (good()) passes(hipMemcpy_(to, from, bytes, kToDevice), "hipMemcpy");
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    if (good()) passes(hipMemcpy_(to, from, bytes, kToHost), "hipMemcpy");
  }

 private:
  /// ROCm's precision support: gfx942 has AMD's own encoding, gfx950 and gfx12 have that of OCP. The compute
  /// capability is the first two parts of the name.
  std::optional<Element> fp8_of_device() {
    int major = 0;
    int minor = 0;
    if (hipDeviceComputeCapability_(&major, &minor, device_) != 0) return std::nullopt;
    if (major == 9 && minor == 4) return Element::e4m3_fnuz;
    return major == 12 || (major == 9 && minor == 5) ? std::optional(Element::e4m3) : std::nullopt;
  }
  static std::string version_of(const Lt& lt) {
    int version = 0;
    auto* const read = lt.library().symbol<int (*)(Handle, int*)>("hipblasLtGetVersion");
    return read != nullptr && read(lt.handle(), &version) == 0 ? std::to_string(version) : "";
  }
  void enqueue(Type type, int size, const void* a, const void* b, void* c) override {
    const std::optional<Numbers> n = numbers_of(type);
    if (!n) return refuse();
    const int status = rocblas_gemm_ex_(handle_, kTranspose, kPlain, size, size, size, one(type), a,
                                        n->factor, size, b, n->factor, size, zero(type), c, n->sum, size, c,
                                        n->sum, size, n->sum, 0, 0, 0);  // rocblas_gemm_algo_standard
    if (status == kNotImplemented || status == kExcludedFromBuild || status == kArchMismatch) return refuse();
    passes(status, "rocblas_gemm_ex");
  }
  void mark(bool is_end) override {
    passes(hipEventRecord_(is_end ? end_ : begin_, nullptr), "hipEventRecord");
  }
  float milliseconds_between_marks() override {
    float milliseconds = 0;
    if (passes(hipEventSynchronize_(end_), "hipEventSynchronize"))
      passes(hipEventElapsedTime_(&milliseconds, begin_, end_), "hipEventElapsedTime");
    return milliseconds;
  }

  DynamicLibrary driver_, blas_;
  int device_ = 0;
  std::string fp8_version_;
  Handle handle_ = nullptr;
  Event begin_ = nullptr;
  Event end_ = nullptr;
#define GPUMETER_MEMBER(name, type) std::type_identity_t<type> name##_ = nullptr;
  GPUMETER_HIP(GPUMETER_MEMBER)
  GPUMETER_ROCBLAS(GPUMETER_MEMBER)
};

}  // namespace

Result<std::unique_ptr<Library>> open_rocblas(const std::vector<std::string>& folders,
                                              const pci::Address& address) {
  Result<DynamicLibrary> driver =
      open_any(folders, {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"});
  if (!driver) return driver.error();
  Result<DynamicLibrary> blas =
      open_any(folders, {"librocblas.so.5", "librocblas.so.4", "librocblas.so.3", "librocblas.so.0"});
  if (!blas) return blas.error();
  auto library = std::make_unique<Rocblas>(*std::move(driver), *std::move(blas));
  if (const auto opened = library->open(pci::to_string(address)); !opened) return opened.error();
  library->add_fp8(folders);
  return Result<std::unique_ptr<Library>>(std::move(library));
}

}  // namespace gpumeter::benchmark::blas
