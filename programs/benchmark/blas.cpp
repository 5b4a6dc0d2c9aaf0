#include "programs/benchmark/blas.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "collectors/sources/dynamic_library.hpp"
#include "programs/benchmark/matrix.hpp"

// Declared from the facts of the ABI, so that the build needs no SDK: cuda.h (driver API 11.0 to 13.0:
// CUresult and CUdevice are int, CUdeviceptr is as wide as a pointer), library_types.h and cublas_api.h
// (cuBLAS 11 to 13; before 11, cublasGemmEx had another parameter at the place of computeType),
// hip_runtime_api.h (ROCm 5 to 7), rocblas-types.h and rocblas-functions.h (rocBLAS 2.45 to 5), cublasLt.h of
// CUDA 12.6, hipblaslt.h of ROCm 6.1 to 7. Enumerations are int; contexts, events, handles and descriptors
// are pointers.
namespace gpumeter::benchmark::blas {
namespace {

/// A function of a library and the name by which it is found. It returns a status; 0 is success.
template <class... Arguments>
struct Function {
  const char* name;
  int (*pointer)(Arguments...) = nullptr;
};

/// The numbers by which a library knows a type.
struct Numbers {
  int factor, sum, compute;
};

/// A data type. tf32 computes with 10 bits of the fraction of fp32.
struct Row {
  const char* name;
  Element factor, sum;
  double rounding;
  std::optional<Numbers> cublas;   ///< cudaDataType twice, cublasComputeType_t
  std::optional<Numbers> rocblas;  ///< rocblas_datatype three times
  bool is_fp8 = false;
};
// clang-format off
constexpr Row kRows[] = {
    {"bf16", Element::bf16, Element::fp32, kMatrixUnitRounding, Numbers{14, 0, 68}, Numbers{168, 151, 151}},   // R_16BF, R_32F, 32F; bf16_r, f32_r
    {"fp16", Element::fp16, Element::fp32, kMatrixUnitRounding, Numbers{2, 0, 68}, Numbers{150, 151, 151}},    // R_16F; f16_r
    {"tf32", Element::fp32, Element::fp32, kMatrixUnitRounding, Numbers{0, 0, 77}, std::nullopt},              // 32F_FAST_TF32
    {"fp32", Element::fp32, Element::fp32, kFp32Rounding, Numbers{0, 0, 68}, Numbers{151, 151, 151}},
    {"fp64", Element::fp64, Element::fp64, kFp64Rounding, Numbers{1, 1, 70}, Numbers{152, 152, 152}},          // R_64F, 64F; f64_r
    {"int8", Element::int8, Element::int32, kExact, Numbers{3, 10, 72}, Numbers{160, 162, 162}},               // R_8I, R_32I, 32I; i8_r, i32_r
    {"fp8", Element::e4m3, Element::fp32, kExact, std::nullopt, std::nullopt, true},
};
// clang-format on

using Files = std::vector<const char*>;

/// The functions of a driver's runtime and, the last one, of its library of matrix products.
struct Functions {
  Function<unsigned> init;
  Function<int*, const char*> find_device;
  Function<void**, std::size_t> allocate;
  Function<void*> release;
  Function<void*, const void*, std::size_t> upload, download;
  Function<void**, unsigned> create_event;
  Function<void*, void*> record;
  Function<void*> wait_for;
  Function<float*, void*, void*> time_between;
  Function<void**> create_handle;
};

/// What the two vendors differ in.
struct Vendor {
  const char *backend, *backend_of_fp8;
  Files driver, library, library_of_fp8;
  Functions functions;
  std::optional<Numbers> Row::*numbers;
  int transposed, plain;
  std::array<int, 3> refusals;  ///< statuses for products that the device or the library lacks
};

const Vendor kNvidia{
    .backend = "cublas",
    .backend_of_fp8 = "cublaslt",
    .driver = {"libcuda.so.1"},
    .library = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"},
    .library_of_fp8 = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"},
    .functions = {{"cuInit"},
                  {"cuDeviceGetByPCIBusId"},
                  {"cuMemAlloc_v2"},
                  {"cuMemFree_v2"},
                  {"cuMemcpyHtoD_v2"},
                  {"cuMemcpyDtoH_v2"},
                  {"cuEventCreate"},
                  {"cuEventRecord"},
                  {"cuEventSynchronize"},
                  {"cuEventElapsedTime"},
                  {"cublasCreate_v2"}},
    .numbers = &Row::cublas,
    .transposed = 1,         // CUBLAS_OP_T
    .plain = 0,              // CUBLAS_OP_N
    .refusals = {15, 8, 8},  // CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_ARCH_MISMATCH
};

const Vendor kAmd{
    .backend = "rocblas",
    .backend_of_fp8 = "hipblaslt",
    .driver = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"},
    .library = {"librocblas.so.5", "librocblas.so.4", "librocblas.so.3", "librocblas.so.0"},
    .library_of_fp8 = {"libhipblaslt.so.1", "libhipblaslt.so.0"},
    .functions = {{"hipInit"},
                  {"hipDeviceGetByPCIBusId"},
                  {"hipMalloc"},
                  {"hipFree"},
                  {"hipMemcpyHtoD"},
                  {"hipMemcpyDtoH"},
                  {"hipEventCreateWithFlags"},
                  {"hipEventRecord"},
                  {"hipEventSynchronize"},
                  {"hipEventElapsedTime"},
                  {"rocblas_create_handle"}},
    .numbers = &Row::rocblas,
    .transposed = 112,  // rocblas_operation_transpose
    .plain = 111,       // rocblas_operation_none
    // rocblas_status_not_implemented, rocblas_status_excluded_from_build, rocblas_status_arch_mismatch
    .refusals = {2, 14, 15},
};

/// The numbers by which cublasLt and hipBLASLt differ.
struct LtDialect {
  std::string prefix;
  int fp8, fp32;     ///< data types
  int sums_in_fp32;  ///< compute type
  int transposed, plain;
  int transpose_a, transpose_b, scale_a, scale_b;  ///< attributes of a product
  std::size_t algorithm_bytes;
  std::array<int, 2> refusals;  ///< statuses for products that the device or the library lacks
};

/// CUDA 11.8 to 13. Devices before compute capability 8.9 refuse fp8.
const LtDialect kCublasLt{
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

/// ROCm 6.1 to 7. `fp8` is HIP_R_8F_E4M3 of HIP's library_types.h (gfx950 and gfx12; ROCm 6.3 and later), or
/// HIP_R_8F_E4M3_FNUZ, AMD's own (gfx942).
LtDialect hipblas_lt(Element fp8) {
  return {
      .prefix = "hipblasLt",
      .fp8 = fp8 == Element::e4m3 ? 28 : 1000,
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
}

/// Opens the first of the files, each first in the folders and then by the loader's search.
Result<DynamicLibrary> open_any(const std::vector<std::string>& folders, const Files& files) {
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

/// The largest workspace, which NVIDIA recommends for Hopper (cuBLAS: cublasSetWorkspace). One is enough.
constexpr std::size_t kLtWorkspace = std::size_t{32} << 20U;
/// CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES and HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES; uint64_t.
constexpr int kMostWorkspace = 1;

/// The library for products of fp8, cublasLt or hipBLASLt, and what it has prepared.
struct Lt {
  DynamicLibrary library;
  const LtDialect dialect;
  Function<void**> create{"Create"};
  Function<void**, int, int> describe{"MatmulDescCreate"};
  Function<void*, int, const void*, std::size_t> set{"MatmulDescSetAttribute"};
  Function<void**, int, std::uint64_t, std::uint64_t, std::int64_t> layout{"MatrixLayoutCreate"};
  Function<void**> prefer{"MatmulPreferenceCreate"};
  Function<void*, int, const void*, std::size_t> set_preference{"MatmulPreferenceSetAttribute"};
  Function<void*, void*, void*, void*, void*, void*, void*, int, void*, int*> choose{
      "MatmulAlgoGetHeuristic"};
  Function<void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*,
           void*, void*, const void*, void*, std::size_t, void*>
      multiply{"Matmul"};

  void *handle = nullptr, *product = nullptr, *factors = nullptr, *sums = nullptr, *preference = nullptr;
  /// Memory of the device. `one` holds 1 in fp32, the scale of both factors; frameworks always pass it.
  void *workspace = nullptr, *one = nullptr;
  int size = 0;  ///< of the matrices; 0: none
  /// cublasLtMatmulHeuristicResult_t has 96 bytes, hipblasLtMatmulHeuristicResult_t 56. Both begin with the
  /// algorithm.
  alignas(8) std::array<std::byte, 256> found{};
};

/// A vendor's library with the driver's runtime, on one device. The first error stays: `problem()` names it,
/// and calls after it do nothing. Nothing is freed but memory: the process ends.
class Library {
 public:
  /// The Error: a library is missing, or the driver does not have the GPU.
  static Result<std::unique_ptr<Library>> open(const Vendor& vendor, const std::vector<std::string>& folders,
                                               const pci::Address& address) {
    Result<DynamicLibrary> driver = open_any(folders, vendor.driver);
    if (!driver) return driver.error();
    Result<DynamicLibrary> blas = open_any(folders, vendor.library);
    if (!blas) return blas.error();
    std::unique_ptr<Library> library(new Library(vendor, *std::move(driver), *std::move(blas)));
    if (!library->start(pci::to_string(address))) return Error(library->problem());
    library->open_fp8(folders);
    return library;
  }

  /// The library that computes products of this type.
  const char* backend(const Row& row) const { return row.is_fp8 ? vendor_.backend_of_fp8 : vendor_.backend; }
  /// The versions of the libraries. NVIDIA delivers cublasLt with cuBLAS, under the same version.
  std::vector<Fact> facts() {
    if (is_nvidia()) {
      int library = 0;
      int driver = 0;
      call(version_of_cublas_, handle_, &library);
      call(version_of_cuda_, &driver);
      return {{"cublas", std::to_string(library) + " (driver for CUDA " + std::to_string(driver) + ")"}};
    }
    std::array<char, 128> text{};
    call(version_of_rocblas_, text.data(), text.size() - 1);
    std::vector<Fact> all{{"rocblas", text.data()}};
    const std::string version = lt_ ? version_of_hipblas_lt() : "";
    if (!version.empty()) all.push_back({"hipblaslt", version});
    return all;
  }
  /// The encoding of fp8 on this device.
  Element fp8() const noexcept { return fp8_; }

  void* allocate(std::size_t bytes) {
    void* memory = nullptr;
    call(functions_.allocate, &memory, bytes);
    return memory;
  }
  void release(void* memory) {
    if (memory != nullptr) passes(functions_.release.pointer(memory), functions_.release.name);
  }
  void upload(void* to, const void* from, std::size_t bytes) { call(functions_.upload, to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) { call(functions_.download, to, from, bytes); }

  /// C = A^T * B for square matrices by columns. Waits for the end; seconds by the device's clock. nullopt:
  /// an error, or refused().
  std::optional<double> multiply(const Row& row, int size, const void* a, const void* b, void* c) {
    if (row.is_fp8) prepare_fp8(size);
    if (!good() || refused_) return std::nullopt;
    void* const kDefaultStream = nullptr;
    call(functions_.record, begin_, kDefaultStream);
    row.is_fp8 ? enqueue_fp8(a, b, c) : enqueue(row, size, a, b, c);
    call(functions_.record, end_, kDefaultStream);
    float milliseconds = 0;
    call(functions_.wait_for, end_);
    call(functions_.time_between, &milliseconds, begin_, end_);
    if (!good() || refused_ || !(milliseconds > 0)) return std::nullopt;
    return static_cast<double>(milliseconds) * 1e-3;
  }

  /// Frees the memory that the library itself needed. multiply() must not follow.
  void end() {
    if (!lt_) return;
    release(lt_->workspace);
    release(lt_->one);
  }

  /// The library does not have the last product's type on this device, and why, if it is known.
  bool refused() const noexcept { return refused_; }
  const std::string& refusal() const noexcept { return refusal_; }
  bool good() const noexcept { return problem_.empty(); }
  const std::string& problem() const noexcept { return problem_; }
  void clear() {
    problem_.clear();
    refused_ = false;
    refusal_.clear();
  }

 private:
  Library(const Vendor& vendor, DynamicLibrary driver, DynamicLibrary blas)
      : vendor_(vendor), driver_(std::move(driver)), blas_(std::move(blas)), functions_(vendor.functions) {}

  bool is_nvidia() const noexcept { return &vendor_ == &kNvidia; }

  bool passes(int code, const char* name) {
    if (code != 0 && good()) problem_ = std::string(name) + " returned " + std::to_string(code);
    return good();
  }
  template <class... Arguments, class... Values>
  bool call(const Function<Arguments...>& function, Values... values) {
    return good() && passes(function.pointer(values...), function.name);
  }
  template <class... Arguments>
  void find(Function<Arguments...>& function) {
    function.pointer = driver_.symbol<int (*)(Arguments...)>(function.name);
    if (function.pointer == nullptr) function.pointer = blas_.symbol<int (*)(Arguments...)>(function.name);
    if (function.pointer == nullptr && good()) problem_ = std::string("the library has no ") + function.name;
  }
  template <class... Functions>
  void find_all(Functions&... functions) {
    (find(functions), ...);
  }
  template <class... Functions>
  void find_all_of_lt(Functions&... functions) {
    const auto find_one = [this](auto& function) {
      const std::string name = lt_->dialect.prefix + function.name;
      function.pointer = lt_->library.symbol<decltype(function.pointer)>(name.c_str());
      if (function.pointer == nullptr && why_no_lt_.empty()) why_no_lt_ = "the library has no " + name;
    };
    (find_one(functions), ...);
  }

  bool start(const std::string& address) {
    auto& f = functions_;
    find_all(f.init, f.find_device, f.allocate, f.release, f.upload, f.download, f.create_event, f.record,
             f.wait_for, f.time_between, f.create_handle);
    if (is_nvidia()) find_all(retain_, make_current_, version_of_cuda_, version_of_cublas_, cublas_gemm_);
    if (!is_nvidia()) find_all(set_device_, capability_, version_of_rocblas_, rocblas_gemm_);
    constexpr unsigned kDefault = 0;
    return call(f.init, kDefault) && call(f.find_device, &device_, address.c_str()) && use_device() &&
           call(f.create_handle, &handle_) && call(f.create_event, &begin_, kDefault) &&
           call(f.create_event, &end_, kDefault);
  }
  /// Empty: unknown.
  std::string version_of_hipblas_lt() const {
    int version = 0;
    auto* const read = lt_->library.symbol<int (*)(void*, int*)>("hipblasLtGetVersion");
    return read != nullptr && read(lt_->handle, &version) == 0 ? std::to_string(version) : "";
  }
  bool use_device() {
    if (!is_nvidia()) return call(set_device_, device_);
    void* context = nullptr;
    return call(retain_, &context, device_) && call(make_current_, context);
  }

  /// The library for fp8, which an old installation lacks: then fp8 is refused.
  void open_fp8(const std::vector<std::string>& folders) {
    const std::optional<Element> encoding = is_nvidia() ? Element::e4m3 : fp8_of_device();
    if (!encoding) return;
    fp8_ = *encoding;
    Result<DynamicLibrary> library = open_any(folders, vendor_.library_of_fp8);
    if (!library) {
      why_no_lt_ = library.error().message();
      return;
    }
    lt_.emplace(Lt{*std::move(library), is_nvidia() ? kCublasLt : hipblas_lt(fp8_)});
    find_all_of_lt(lt_->create, lt_->describe, lt_->set, lt_->layout, lt_->prefer, lt_->set_preference,
                   lt_->choose, lt_->multiply);
    if (!why_no_lt_.empty()) return lt_.reset();
    const int code = lt_->create.pointer(&lt_->handle);
    if (code == 0) return;
    why_no_lt_ = lt_->dialect.prefix + "Create returned " + std::to_string(code);
    lt_.reset();
  }
  /// ROCm's precision support: gfx942 has AMD's own encoding, gfx950 and gfx12 have that of OCP. The compute
  /// capability is the first two parts of the name.
  std::optional<Element> fp8_of_device() const {
    int major = 0;
    int minor = 0;
    if (capability_.pointer(&major, &minor, device_) != 0) return std::nullopt;
    if (major == 9 && minor == 4) return Element::e4m3_fnuz;
    return major == 12 || (major == 9 && minor == 5) ? std::optional(Element::e4m3) : std::nullopt;
  }
  void refuse(std::string why = {}) {
    refused_ = true;
    refusal_ = std::move(why);
  }
  std::string failure_of_lt(const char* name, int code) const {
    return lt_->dialect.prefix + name + " returned " + std::to_string(code);
  }
  /// While a product is prepared, the device has not computed yet, so it is not at fault: each error is a
  /// refusal.
  template <class... Arguments, class... Values>
  void prepare_by(const Function<Arguments...>& function, Values... values) {
    if (!good() || refused_) return;
    const int code = function.pointer(values...);
    if (code != 0) refuse(failure_of_lt(function.name, code));
  }

  /// Chooses the algorithm for square matrices, unless it is chosen already. Takes milliseconds. Tensor cores
  /// take the first factor transposed and the second plain, and add in fp32.
  void prepare_fp8(int size) {
    if (!lt_) return refuse(why_no_lt_);
    if (size == lt_->size) return;
    lt_->size = 0;
    if (lt_->workspace == nullptr) {
      constexpr float kOne = 1;
      lt_->workspace = allocate(kLtWorkspace);
      lt_->one = allocate(sizeof kOne);
      upload(lt_->one, &kOne, sizeof kOne);
    }
    describe_product();
    const auto n = static_cast<std::uint64_t>(size);
    prepare_by(lt_->layout, &lt_->factors, lt_->dialect.fp8, n, n, std::int64_t{size});
    prepare_by(lt_->layout, &lt_->sums, lt_->dialect.fp32, n, n, std::int64_t{size});
    choose_algorithm();
    if (good() && !refused_) lt_->size = size;
  }
  void describe_product() {
    const LtDialect& dialect = lt_->dialect;
    if (lt_->product == nullptr) prepare_by(lt_->describe, &lt_->product, dialect.sums_in_fp32, dialect.fp32);
    const std::int32_t transposed = dialect.transposed;
    const std::int32_t plain = dialect.plain;
    prepare_by(lt_->set, lt_->product, dialect.transpose_a, &transposed, sizeof transposed);
    prepare_by(lt_->set, lt_->product, dialect.transpose_b, &plain, sizeof plain);
    prepare_by(lt_->set, lt_->product, dialect.scale_a, &lt_->one, sizeof lt_->one);
    prepare_by(lt_->set, lt_->product, dialect.scale_b, &lt_->one, sizeof lt_->one);
  }
  void choose_algorithm() {
    if (lt_->preference == nullptr) {
      const std::uint64_t most = kLtWorkspace;
      prepare_by(lt_->prefer, &lt_->preference);
      prepare_by(lt_->set_preference, lt_->preference, kMostWorkspace, &most, sizeof most);
    }
    int count = 0;
    prepare_by(lt_->choose, lt_->handle, lt_->product, lt_->factors, lt_->factors, lt_->sums, lt_->sums,
               lt_->preference, 1, lt_->found.data(), &count);
    if (!good() || refused_) return;
    int state = 0;  // behind the algorithm and the size of its workspace
    std::memcpy(&state, &lt_->found[lt_->dialect.algorithm_bytes + sizeof(std::size_t)], sizeof state);
    // No algorithm and no error: hipBLASLt without kernels for this type and device.
    if (count == 0) state = lt_->dialect.refusals[0];
    if (state != 0) refuse(failure_of_lt(lt_->choose.name, state));
  }

  /// Starts C = A^T * B with fp32 in C, as prepared.
  void enqueue_fp8(const void* a, const void* b, void* c) {
    constexpr float kOne = 1;
    constexpr float kZero = 0;
    const int code = lt_->multiply.pointer(lt_->handle, lt_->product, &kOne, a, lt_->factors, b, lt_->factors,
                                           &kZero, c, lt_->sums, c, lt_->sums, lt_->found.data(),
                                           lt_->workspace, kLtWorkspace, nullptr);
    if (code == 0 || !good()) return;
    const bool is_refused = std::ranges::find(lt_->dialect.refusals, code) != lt_->dialect.refusals.end();
    if (is_refused) return refuse(failure_of_lt("Matmul", code));
    problem_ = failure_of_lt("Matmul", code);
  }
  // Int8 requires the first factor to be transposed and the second to be plain; all types take that form.
  void enqueue(const Row& row, int size, const void* a, const void* b, void* c) {
    const std::optional<Numbers>& numbers = row.*vendor_.numbers;
    if (!numbers) return refuse();
    const auto [factor, sum, compute] = *numbers;
    const int form = vendor_.transposed;
    constexpr int kDefaultMethod = -1;  // CUBLAS_GEMM_DEFAULT
    const void* const one = scalar(row.sum, 1);
    const void* const zero = scalar(row.sum, 0);
    const int status =
        is_nvidia()
            ? cublas_gemm_.pointer(handle_, form, vendor_.plain, size, size, size, one, a, factor, size, b,
                                   factor, size, zero, c, sum, size, compute, kDefaultMethod)
            : rocblas_gemm_.pointer(handle_, form, vendor_.plain, size, size, size, one, a, factor, size, b,
                                    factor, size, zero, c, sum, size, c, sum, size, compute, 0, 0,
                                    0);  // rocblas_gemm_algo_standard
    if (std::ranges::find(vendor_.refusals, status) != vendor_.refusals.end()) return refuse();
    passes(status, is_nvidia() ? cublas_gemm_.name : rocblas_gemm_.name);
  }
  /// 0 or 1 in the type of the sums: a factor of the product, or that of the previous C.
  static const void* scalar(Element sum, int value) noexcept {
    static constexpr double kDouble[] = {0, 1};
    static constexpr float kFloat[] = {0, 1};
    static constexpr std::int32_t kInt[] = {0, 1};
    if (sum == Element::fp64) return kDouble + value;
    return sum == Element::int32 ? static_cast<const void*>(kInt + value) : kFloat + value;
  }

  const Vendor& vendor_;
  DynamicLibrary driver_, blas_;
  Functions functions_;
  Function<void**, int> retain_{"cuDevicePrimaryCtxRetain"};
  Function<void*> make_current_{"cuCtxSetCurrent"};
  Function<int*> version_of_cuda_{"cuDriverGetVersion"};
  Function<void*, int*> version_of_cublas_{"cublasGetVersion_v2"};
  Function<void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int,
           const void*, void*, int, int, int, int>
      cublas_gemm_{"cublasGemmEx"};
  Function<int> set_device_{"hipSetDevice"};
  Function<int*, int*, int> capability_{"hipDeviceComputeCapability"};
  Function<char*, std::size_t> version_of_rocblas_{"rocblas_get_version_string"};
  Function<void*, int, int, int, int, int, const void*, const void*, int, int, const void*, int, int,
           const void*, const void*, int, int, void*, int, int, int, int, std::int32_t, std::uint32_t>
      rocblas_gemm_{"rocblas_gemm_ex"};
  int device_ = 0;
  void *handle_ = nullptr, *begin_ = nullptr, *end_ = nullptr;
  std::string problem_;
  bool refused_ = false;
  std::string refusal_;
  std::optional<Lt> lt_;
  std::string why_no_lt_;
  Element fp8_ = Element::e4m3;
};

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

  std::optional<double> multiply() { return library_.multiply(row_, static_cast<int>(size_), a_, b_, c_); }

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
  const std::string test = std::string(library.backend(row)) + " " + row.name;
  const std::optional<std::size_t> size = fitting_size(library, row, pace);
  if (!size) return ended_early(library, test, outcome);
  Matrices matrices(library, row, *size);
  const std::optional<Sample> sample = repeat(pace, [&] { return matrices.multiply(); });
  if (!sample) return ended_early(library, test, outcome);
  outcome.add(Quantity::flops, row.name, library.backend(row), operations_of_product(*size), *sample);
  if (const auto wrong = matrices.wrong(faults)) outcome.failures.push_back(test + ": " + *wrong);
  library.clear();
}

}  // namespace

void measure(const std::vector<std::string>& folders, const pci::Address& address, const Pace& pace,
             Faults faults, Outcome& outcome) {
  auto opened = Library::open(kNvidia, folders, address);
  if (!opened) {
    outcome.notes.push_back("cublas: " + opened.error().message());
    opened = Library::open(kAmd, folders, address);
  }
  if (!opened) return outcome.notes.push_back("rocblas: " + opened.error().message());
  Library& library = **opened;
  for (Fact& fact : library.facts()) outcome.facts.push_back(std::move(fact));
  for (Row row : kRows) {
    if (row.is_fp8) row.factor = library.fp8();
    measure_type(library, row, pace, faults, outcome);
  }
  library.end();
}

}  // namespace gpumeter::benchmark::blas
