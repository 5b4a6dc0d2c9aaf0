#include <cstdint>
#include <type_traits>
#include <utility>

#include "programs/benchmark/blas/library.hpp"
#include "programs/benchmark/blas/lt_dialects.hpp"

// Declared from the facts of the ABI, so that the build needs no SDK: cuda.h (driver API 11.0 to 13.0:
// CUresult and CUdevice are int, CUdeviceptr is 64 bits wide), library_types.h and cublas_api.h (cuBLAS 11 to
// 13; before 11, cublasGemmEx had another parameter at the place of computeType).
namespace gpumeter::benchmark::blas {
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

constexpr int kTranspose = 1;       // CUBLAS_OP_T
constexpr int kPlain = 0;           // CUBLAS_OP_N
constexpr int kDefaultMethod = -1;  // CUBLAS_GEMM_DEFAULT
constexpr int kArchMismatch = 8;    // CUBLAS_STATUS_ARCH_MISMATCH
constexpr int kNotSupported = 15;   // CUBLAS_STATUS_NOT_SUPPORTED

struct Numbers {
  int factor, sum, compute;  // cudaDataType, cudaDataType, cublasComputeType_t
};
Numbers numbers_of(Type type) {
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
  // Int8 requires the first factor to be transposed and the second to be plain; all types take that form.
  void enqueue(Type type, int size, const void* a, const void* b, void* c) override {
    const Numbers n = numbers_of(type);
    const int status =
        cublasGemmEx_(handle_, kTranspose, kPlain, size, size, size, one(type), a, n.factor, size, b,
                      n.factor, size, zero(type), c, n.sum, size, n.compute, kDefaultMethod);
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

}  // namespace gpumeter::benchmark::blas
