#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "collectors/sources/dynamic_library.hpp"
#include "collectors/sources/pci.hpp"
#include "programs/benchmark/matrix.hpp"
#include "programs/benchmark/measure.hpp"

namespace gpumeter::benchmark::blas {

/// Measures matrix products with the vendor's library: cuBLAS and cublasLt, otherwise rocBLAS and hipBLASLt.
/// Only these reach the matrix units, which OpenCL does not have. The outcome has a note if there is none for
/// the GPU, and for each type that the library lacks.
void measure(const std::vector<std::string>& folders, const pci::Address& address, const Pace& pace,
             Faults faults, Outcome& outcome);

/// The functions of cublasLt and hipBLASLt without their prefix: cublasLt.h of CUDA 12.6, hipblaslt.h of ROCm
/// 6.1 to 7. Enumerations are int, descriptors are pointers.
#define GPUMETER_LT(X)                                                                                  \
  X(Create, int (*)(void**))                                                                            \
  X(MatmulDescCreate, int (*)(void**, int, int))                                                        \
  X(MatmulDescSetAttribute, int (*)(void*, int, const void*, std::size_t))                              \
  X(MatrixLayoutCreate, int (*)(void**, int, std::uint64_t, std::uint64_t, std::int64_t))               \
  X(MatmulPreferenceCreate, int (*)(void**))                                                            \
  X(MatmulPreferenceSetAttribute, int (*)(void*, int, const void*, std::size_t))                        \
  X(MatmulAlgoGetHeuristic, int (*)(void*, void*, void*, void*, void*, void*, void*, int, void*, int*)) \
  X(Matmul, int (*)(void*, void*, const void*, const void*, void*, const void*, void*, const void*,     \
                    const void*, void*, void*, void*, const void*, void*, std::size_t, void*))

/// The numbers by which the two differ; blas_vendors.cpp has them with their sources.
struct LtDialect {
  const char* prefix;
  int fp8, fp32;     ///< data types
  int sums_in_fp32;  ///< compute type
  int transposed, plain;
  int transpose_a, transpose_b, scale_a, scale_b;  ///< attributes of a product
  std::size_t algorithm_bytes;
  std::array<int, 2> refusals;  ///< statuses for products that the device or the library lacks
};

/// The largest workspace, which NVIDIA recommends for Hopper (cuBLAS: cublasSetWorkspace). One is enough.
inline constexpr std::size_t kLtWorkspace = std::size_t{32} << 20U;

/// A status of a library's function.
struct LtStatus {
  std::string call;
  int code = 0;
  bool is_refused = false;
};

/// Products of fp8 with cublasLt or hipBLASLt. Tensor cores take the first factor transposed and the second
/// plain, and add in fp32. One thread. Nothing is given back: the process ends.
class Lt {
 public:
  /// Memory of the device. `one` holds 1 in fp32, the scale of both factors; frameworks always pass it.
  struct Memory {
    void* workspace = nullptr;
    void* one = nullptr;
  };

  Lt(DynamicLibrary library, const LtDialect& dialect) : library_(std::move(library)), dialect_(dialect) {}

  /// The Error: a function is missing, or the device does not suit the library.
  Result<Done> open();
  void* handle() const noexcept { return handle_; }
  const DynamicLibrary& library() const noexcept { return library_; }

  /// Chooses the algorithm for square matrices, unless it is chosen already. Takes milliseconds. Each error
  /// is a refusal: the device has not computed yet, so it is not at fault.
  LtStatus prepare(int size, const Memory& memory);
  /// Starts C = A^T * B with fp32 in C, as prepared.
  LtStatus multiply(const void* a, const void* b, void* c);

 private:
  LtStatus status(const char* call, int code) const;
  LtStatus describe_product();
  LtStatus describe_matrices(int size);
  LtStatus choose_algorithm();
  int state_of_found() const;

  DynamicLibrary library_;
  const LtDialect dialect_;
  void* handle_ = nullptr;
  Memory memory_;
  int size_ = 0;  ///< prepared; 0: none
  void *product_ = nullptr, *factors_ = nullptr, *sums_ = nullptr, *preference_ = nullptr;
  /// cublasLtMatmulHeuristicResult_t has 96 bytes, hipblasLtMatmulHeuristicResult_t 56. Both begin with the
  /// algorithm.
  struct alignas(8) Found {
    std::array<std::byte, 256> bytes{};
  } found_;
#define GPUMETER_LT_MEMBER(name, type) std::type_identity_t<type> name##_ = nullptr;
  GPUMETER_LT(GPUMETER_LT_MEMBER)
#undef GPUMETER_LT_MEMBER
};

/// Data types of the factors; tf32 computes with 10 bits of the fraction of fp32.
enum class Type : std::uint8_t { fp64, fp32, tf32, fp16, bf16, int8, fp8 };

/// A vendor's library with the driver's runtime, on one device. The first error stays: `problem()` names it,
/// and calls after it do nothing. One thread. Nothing is freed but memory: the process ends.
class Library {
 public:
  virtual ~Library() = default;

  /// The library that computes products of this type: cublas, cublaslt, rocblas, hipblaslt.
  virtual const char* backend(Type type) const = 0;
  /// The versions of the libraries.
  virtual std::vector<Fact> facts() = 0;
  /// The encoding of fp8 on this device.
  Element fp8() const noexcept { return fp8_; }
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) = 0;
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;

  /// C = A^T * B for square matrices by columns, with sums in fp64, fp32 or int32. Waits for the end; seconds
  /// by the device's clock. nullopt: an error, or refused().
  std::optional<double> multiply(Type type, int size, const void* a, const void* b, void* c);

  /// Frees the memory that the library itself needed. multiply() must not follow.
  void end();

  /// The library does not have the last product's type on this device.
  bool refused() const noexcept { return refused_; }
  /// Why, if it is known.
  const std::string& refusal() const noexcept { return refusal_; }
  bool good() const noexcept { return problem_.empty(); }
  const std::string& problem() const noexcept { return problem_; }
  void clear() {
    problem_.clear();
    refused_ = false;
    refusal_.clear();
  }

 protected:
  bool passes(int code, const char* call) {
    if (code != 0 && problem_.empty()) problem_ = std::string(call) + " returned " + std::to_string(code);
    return good();
  }
  void refuse(std::string why = {}) {
    refused_ = true;
    refusal_ = std::move(why);
  }
  /// The library for fp8, which an old installation lacks: then fp8 is refused.
  void attach(Result<std::unique_ptr<Lt>> lt, Element fp8);
  /// 0 or 1 in the type of the sums: a factor of the product, or that of the previous C.
  static const void* scalar(Type type, int value) noexcept;

 private:
  virtual void enqueue(Type type, int size, const void* a, const void* b, void* c) = 0;  ///< not fp8
  virtual void mark(bool is_end) = 0;              ///< records the first or the second event
  virtual float milliseconds_between_marks() = 0;  ///< after the second event

  bool take(const LtStatus& status);
  bool prepare_fp8(int size);

  std::string problem_;
  bool refused_ = false;
  std::string refusal_;
  std::unique_ptr<Lt> lt_;
  std::string why_no_lt_;
  Lt::Memory lt_memory_;
  Element fp8_ = Element::e4m3;
};

/// Opens the first of the files, each first in the folders and then by the loader's search.
Result<DynamicLibrary> open_any(const std::vector<std::string>& folders,
                                std::initializer_list<const char*> files);

/// The library for fp8, opened and ready.
Result<std::unique_ptr<Lt>> open_lt(const std::vector<std::string>& folders,
                                    std::initializer_list<const char*> files, const LtDialect& dialect);

/// cuBLAS on the GPU with this address: libcuda.so.1, and libcublas.so of CUDA 11 to 13, with libcublasLt.so
/// for fp8. The Error: a library is missing, or the driver does not have the GPU.
Result<std::unique_ptr<Library>> open_cublas(const std::vector<std::string>& folders,
                                             const pci::Address& address);
/// rocBLAS: libamdhip64.so and librocblas.so of ROCm 5 to 7, with libhipblaslt.so of ROCm 6 and 7 for fp8.
Result<std::unique_ptr<Library>> open_rocblas(const std::vector<std::string>& folders,
                                              const pci::Address& address);

}  // namespace gpumeter::benchmark::blas
