#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "base/result.hpp"
#include "collectors/sources/dynamic_library.hpp"

namespace gpumeter::benchmark::blas {

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

/// The numbers by which the two differ; lt_dialects.hpp has them with their sources.
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

}  // namespace gpumeter::benchmark::blas
