#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "programs/benchmark/blas.hpp"

namespace gpumeter::benchmark::blas {

/// CUDA 11.8 to 13. Devices before compute capability 8.9 refuse fp8.
constexpr LtDialect kCublasLt{
    .prefix = "cublasLt",
    .fp8 = 28,              // CUDA_R_8F_E4M3, library_types.h
    .fp32 = 0,              // CUDA_R_32F
    .sums_in_fp32 = 68,     // CUBLAS_COMPUTE_32F, cublas_api.h
    .transposed = 1,        // CUBLAS_OP_T
    .plain = 0,             // CUBLAS_OP_N
    .transpose_a = 3,       // CUBLASLT_MATMUL_DESC_TRANSA, cublasLt.h; int32_t
    .transpose_b = 4,       // CUBLASLT_MATMUL_DESC_TRANSB
    .scale_a = 17,          // CUBLASLT_MATMUL_DESC_A_SCALE_POINTER; const void*
    .scale_b = 18,          // CUBLASLT_MATMUL_DESC_B_SCALE_POINTER
    .algorithm_bytes = 64,  // cublasLtMatmulAlgo_t: uint64_t data[8]
    .refusals = {15, 8},    // CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_ARCH_MISMATCH
};

/// ROCm 6.1 to 7, with OCP's fp8 (gfx950 and gfx12; ROCm 6.3 and later).
constexpr LtDialect kHipblasLt{
    .prefix = "hipblasLt",
    .fp8 = 28,              // HIP_R_8F_E4M3, library_types.h of HIP
    .fp32 = 0,              // HIP_R_32F
    .sums_in_fp32 = 2,      // HIPBLAS_COMPUTE_32F, hipblas-common.h
    .transposed = 112,      // HIPBLAS_OP_T
    .plain = 111,           // HIPBLAS_OP_N
    .transpose_a = 0,       // HIPBLASLT_MATMUL_DESC_TRANSA, hipblaslt.h; int32_t
    .transpose_b = 1,       // HIPBLASLT_MATMUL_DESC_TRANSB
    .scale_a = 5,           // HIPBLASLT_MATMUL_DESC_A_SCALE_POINTER; void*
    .scale_b = 6,           // HIPBLASLT_MATMUL_DESC_B_SCALE_POINTER
    .algorithm_bytes = 24,  // hipblasLtMatmulAlgo_t: uint8_t data[16]; size_t max_workspace_bytes
    .refusals = {7, 8},     // HIPBLAS_STATUS_NOT_SUPPORTED, HIPBLAS_STATUS_ARCH_MISMATCH
};

/// The same with AMD's own fp8 (gfx942).
constexpr LtDialect kHipblasLtFnuz = [] {
  LtDialect dialect = kHipblasLt;
  dialect.fp8 = 1000;  // HIP_R_8F_E4M3_FNUZ, library_types.h of HIP
  return dialect;
}();

/// CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES and HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES; uint64_t.
constexpr int kMostWorkspace = 1;

Result<Done> Lt::open() {
  const std::string prefix = dialect_.prefix;
#define GPUMETER_LT_LOAD(name, type)                         \
  name##_ = library_.symbol<type>((prefix + #name).c_str()); \
  if (name##_ == nullptr) return Error("the library has no " + prefix + #name);
  GPUMETER_LT(GPUMETER_LT_LOAD)
#undef GPUMETER_LT_LOAD
  if (const int code = Create_(&handle_); code != 0)
    return Error(prefix + "Create returned " + std::to_string(code));
  return Done{};
}

LtStatus Lt::prepare(int size, const Memory& memory) {
  if (size == size_) return {};
  size_ = 0;
  memory_ = memory;
  LtStatus done = describe_product();
  if (done.code == 0) done = describe_matrices(size);
  if (done.code == 0) done = choose_algorithm();
  if (done.code == 0) size_ = size;
  done.is_refused = done.code != 0;
  return done;
}

LtStatus Lt::multiply(const void* a, const void* b, void* c) {
  static constexpr float kOne = 1;
  static constexpr float kZero = 0;
  return status("Matmul", Matmul_(handle_, product_, &kOne, a, factors_, b, factors_, &kZero, c, sums_, c,
                                  sums_, found_.bytes.data(), memory_.workspace, kLtWorkspace, nullptr));
}

LtStatus Lt::status(const char* call, int code) const {
  const bool is_refused = std::ranges::find(dialect_.refusals, code) != dialect_.refusals.end();
  return {std::string(dialect_.prefix) + call, code, is_refused};
}

LtStatus Lt::describe_product() {
  if (product_ == nullptr) {
    const int code = MatmulDescCreate_(&product_, dialect_.sums_in_fp32, dialect_.fp32);
    if (code != 0) return status("MatmulDescCreate", code);
  }
  struct Attribute {
    int name;
    const void* value;
    std::size_t bytes;
  };
  const std::int32_t transposed = dialect_.transposed;
  const std::int32_t plain = dialect_.plain;
  for (const Attribute& each : {Attribute{dialect_.transpose_a, &transposed, sizeof transposed},
                                Attribute{dialect_.transpose_b, &plain, sizeof plain},
                                Attribute{dialect_.scale_a, &memory_.one, sizeof memory_.one},
                                Attribute{dialect_.scale_b, &memory_.one, sizeof memory_.one}}) {
    const int code = MatmulDescSetAttribute_(product_, each.name, each.value, each.bytes);
    if (code != 0) return status("MatmulDescSetAttribute", code);
  }
  return {};
}

LtStatus Lt::describe_matrices(int size) {
  const auto n = static_cast<std::uint64_t>(size);
  int code = MatrixLayoutCreate_(&factors_, dialect_.fp8, n, n, size);
  if (code == 0) code = MatrixLayoutCreate_(&sums_, dialect_.fp32, n, n, size);
  return status("MatrixLayoutCreate", code);
}

LtStatus Lt::choose_algorithm() {
  if (preference_ == nullptr) {
    const std::uint64_t most = kLtWorkspace;
    int code = MatmulPreferenceCreate_(&preference_);
    if (code == 0) code = MatmulPreferenceSetAttribute_(preference_, kMostWorkspace, &most, sizeof most);
    if (code != 0) return status("MatmulPreferenceSetAttribute", code);
  }
  int count = 0;
  const int code = MatmulAlgoGetHeuristic_(handle_, product_, factors_, factors_, sums_, sums_, preference_,
                                           1, found_.bytes.data(), &count);
  // No algorithm and no error: hipBLASLt without kernels for this type and device.
  if (code == 0 && count == 0) return status("MatmulAlgoGetHeuristic", dialect_.refusals[0]);
  return status("MatmulAlgoGetHeuristic", code != 0 ? code : state_of_found());
}

int Lt::state_of_found() const {
  int state = 0;  // behind the algorithm and the size of its workspace
  std::memcpy(&state, &found_.bytes[dialect_.algorithm_bytes + sizeof(std::size_t)], sizeof state);
  return state;
}

// Declared from the facts of the ABI, so that the build needs no SDK: cuda.h (driver API 11.0 to 13.0:
// CUresult and CUdevice are int, CUdeviceptr is 64 bits wide), library_types.h and cublas_api.h (cuBLAS 11 to
// 13; before 11, cublasGemmEx had another parameter at the place of computeType).

namespace {

using DevicePointer = unsigned long long;  // CUdeviceptr
using Event = void*;                       // CUevent
using Context = void*;                     // CUcontext
using Handle = void*;                      // cublasHandle_t

#define GPUMETER_CUDA(X)                                               \
  X(cuInit, int (*)(unsigned))                                         \
  X(cuDriverGetVersion, int (*)(int*))                                 \
  X(cuDeviceGetByPCIBusId, int (*)(int*, const char*))                 \
  X(cuDevicePrimaryCtxRetain, int (*)(Context*, int))                  \
  X(cuCtxSetCurrent, int (*)(Context))                                 \
  X(cuMemAlloc_v2, int (*)(DevicePointer*, std::size_t))               \
  X(cuMemFree_v2, int (*)(DevicePointer))                              \
  X(cuMemcpyHtoD_v2, int (*)(DevicePointer, const void*, std::size_t)) \
  X(cuMemcpyDtoH_v2, int (*)(void*, DevicePointer, std::size_t))       \
  X(cuEventCreate, int (*)(Event*, unsigned))                          \
  X(cuEventRecord, int (*)(Event, void*))                              \
  X(cuEventSynchronize, int (*)(Event))                                \
  X(cuEventElapsedTime, int (*)(float*, Event, Event))
#define GPUMETER_CUBLAS(X)                                                                                  \
  X(cublasCreate_v2, int (*)(Handle*))                                                                      \
  X(cublasGetVersion_v2, int (*)(Handle, int*))                                                             \
  X(cublasGemmEx, int (*)(Handle, int, int, int, int, int, const void*, const void*, int, int, const void*, \
                          int, int, const void*, void*, int, int, int, int))

// NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's type of addresses is a number
void* pointer(DevicePointer address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }
DevicePointer number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

class Cublas final : public Library {
 public:
  Cublas(DynamicLibrary driver, DynamicLibrary blas) : driver_(std::move(driver)), blas_(std::move(blas)) {}

  // NOLINTNEXTLINE(readability-function-size): one line a function of the tables
  Result<Done> open(const std::string& address) {
#define GPUMETER_LOAD(from, name, type) \
  name##_ = (from).symbol<type>(#name); \
  if (name##_ == nullptr) return Error("the library has no " #name);
#define GPUMETER_LOAD_CUDA(name, type) GPUMETER_LOAD(driver_, name, type)
#define GPUMETER_LOAD_CUBLAS(name, type) GPUMETER_LOAD(blas_, name, type)
    GPUMETER_CUDA(GPUMETER_LOAD_CUDA)
    GPUMETER_CUBLAS(GPUMETER_LOAD_CUBLAS)
    int device = 0;
    Context context = nullptr;
    const bool is_open = passes(cuInit_(0), "cuInit") &&
                         passes(cuDeviceGetByPCIBusId_(&device, address.c_str()), "cuDeviceGetByPCIBusId") &&
                         passes(cuDevicePrimaryCtxRetain_(&context, device), "cuDevicePrimaryCtxRetain") &&
                         passes(cuCtxSetCurrent_(context), "cuCtxSetCurrent") &&
                         passes(cublasCreate_v2_(&handle_), "cublasCreate_v2") &&
                         passes(cuEventCreate_(&begin_, 0), "cuEventCreate") &&
                         passes(cuEventCreate_(&end_, 0), "cuEventCreate");
    if (!is_open) return Error(problem());
    return Done{};
  }

  const char* backend(Type type) const override { return type == Type::fp8 ? "cublaslt" : "cublas"; }
  // NVIDIA delivers cublasLt with cuBLAS, under the same version.
  std::vector<Fact> facts() override {
    int library = 0;
    int driver = 0;
    cublasGetVersion_v2_(handle_, &library);
    cuDriverGetVersion_(&driver);
    return {{"cublas", std::to_string(library) + " (driver for CUDA " + std::to_string(driver) + ")"}};
  }
  void add_fp8(const std::vector<std::string>& folders) {
    attach(open_lt(folders, {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"}, kCublasLt),
           Element::e4m3);
  }
  void* allocate(std::size_t bytes) override {
    DevicePointer address = 0;
    if (good()) passes(cuMemAlloc_v2_(&address, bytes), "cuMemAlloc_v2");
    return pointer(address);
  }
  void release(void* memory) override {
    if (memory != nullptr) passes(cuMemFree_v2_(number(memory)), "cuMemFree_v2");
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    if (good()) passes(cuMemcpyHtoD_v2_(number(to), from, bytes), "cuMemcpyHtoD_v2");
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    if (good()) passes(cuMemcpyDtoH_v2_(to, number(from), bytes), "cuMemcpyDtoH_v2");
  }

 private:
  static constexpr int kTranspose = 1;       // CUBLAS_OP_T
  static constexpr int kPlain = 0;           // CUBLAS_OP_N
  static constexpr int kDefaultMethod = -1;  // CUBLAS_GEMM_DEFAULT
  static constexpr int kArchMismatch = 8;    // CUBLAS_STATUS_ARCH_MISMATCH
  static constexpr int kNotSupported = 15;   // CUBLAS_STATUS_NOT_SUPPORTED

  struct Numbers {
    int factor, sum, compute;  // cudaDataType, cudaDataType, cublasComputeType_t
  };
  static Numbers numbers_of(Type type) {
    switch (type) {
      case Type::fp64:
        return {1, 1, 70};  // CUDA_R_64F, CUBLAS_COMPUTE_64F
      case Type::fp32:
        return {0, 0, 68};  // CUDA_R_32F, CUBLAS_COMPUTE_32F
      case Type::tf32:
        return {0, 0, 77};  // CUBLAS_COMPUTE_32F_FAST_TF32
      case Type::fp16:
        return {2, 0, 68};  // CUDA_R_16F
      case Type::bf16:
        return {14, 0, 68};  // CUDA_R_16BF
      case Type::int8:
        return {3, 10, 72};  // CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I
      case Type::fp8:
        break;  // only cublasLt has it
    }
    return {};
  }

  // Int8 requires the first factor to be transposed and the second to be plain; all types take that form.
  void enqueue(Type type, int size, const void* a, const void* b, void* c) override {
    const Numbers n = numbers_of(type);
    const int status =
        cublasGemmEx_(handle_, kTranspose, kPlain, size, size, size, scalar(type, 1), a, n.factor, size, b,
                      n.factor, size, scalar(type, 0), c, n.sum, size, n.compute, kDefaultMethod);
    if (status == kNotSupported || status == kArchMismatch) return refuse();
    passes(status, "cublasGemmEx");
  }
  void mark(bool is_end) override {
    passes(cuEventRecord_(is_end ? end_ : begin_, nullptr), "cuEventRecord");
  }
  float milliseconds_between_marks() override {
    float milliseconds = 0;
    if (passes(cuEventSynchronize_(end_), "cuEventSynchronize"))
      passes(cuEventElapsedTime_(&milliseconds, begin_, end_), "cuEventElapsedTime");
    return milliseconds;
  }

  DynamicLibrary driver_, blas_;
  Handle handle_ = nullptr;
  Event begin_ = nullptr;
  Event end_ = nullptr;
#define GPUMETER_MEMBER(name, type) std::type_identity_t<type> name##_ = nullptr;
  GPUMETER_CUDA(GPUMETER_MEMBER)
  GPUMETER_CUBLAS(GPUMETER_MEMBER)
};

}  // namespace

Result<std::unique_ptr<Library>> open_cublas(const std::vector<std::string>& folders,
                                             const pci::Address& address) {
  Result<DynamicLibrary> driver = open_any(folders, {"libcuda.so.1"});
  if (!driver) return driver.error();
  Result<DynamicLibrary> blas = open_any(folders, {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"});
  if (!blas) return blas.error();
  auto library = std::make_unique<Cublas>(*std::move(driver), *std::move(blas));
  if (const auto opened = library->open(pci::to_string(address)); !opened) return opened.error();
  library->add_fp8(folders);
  return Result<std::unique_ptr<Library>>(std::move(library));
}

// Declared from the facts of the ABI: hip_runtime_api.h (ROCm 5 to 7) and rocblas-types.h,
// rocblas-functions.h (rocBLAS 2.45 to 5). Enumerations are int.

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
  static constexpr int kToDevice = 1;            // hipMemcpyHostToDevice
  static constexpr int kToHost = 2;              // hipMemcpyDeviceToHost
  static constexpr int kPlain = 111;             // rocblas_operation_none
  static constexpr int kTranspose = 112;         // rocblas_operation_transpose
  static constexpr int kNotImplemented = 2;      // rocblas_status_not_implemented
  static constexpr int kExcludedFromBuild = 14;  // rocblas_status_excluded_from_build
  static constexpr int kArchMismatch = 15;       // rocblas_status_arch_mismatch

  struct Numbers {
    int factor, sum;  // rocblas_datatype; the sums are also the compute type
  };
  static std::optional<Numbers> numbers_of(Type type) {
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
    const int status = rocblas_gemm_ex_(handle_, kTranspose, kPlain, size, size, size, scalar(type, 1), a,
                                        n->factor, size, b, n->factor, size, scalar(type, 0), c, n->sum, size,
                                        c, n->sum, size, n->sum, 0, 0, 0);  // rocblas_gemm_algo_standard
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
