#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "collectors/sources/dynamic_library.hpp"
#include "collectors/sources/pci.hpp"
#include "programs/benchmark/blas/lt.hpp"
#include "programs/benchmark/measure/element.hpp"
#include "programs/benchmark/measure/result.hpp"

namespace gpumeter::benchmark::blas {

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
  /// The factor of the product and that of the previous C, in the type of the sums.
  static const void* one(Type type) noexcept;
  static const void* zero(Type type) noexcept;

 private:
  virtual void enqueue(Type type, int size, const void* a, const void* b, void* c) = 0;  ///< not fp8
  virtual void mark(bool is_end) = 0;              ///< records the first or the second event
  virtual float milliseconds_between_marks() = 0;  ///< after the second event

  bool take(const LtStatus& status);
  bool prepare_fp8(int size);
  void start(Type type, int size, const void* a, const void* b, void* c);

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
