#pragma once

#include "programs/benchmark/blas/lt.hpp"

namespace gpumeter::benchmark::blas {

/// CUDA 11.8 to 13. Devices before compute capability 8.9 refuse fp8.
inline constexpr LtDialect kCublasLt{
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
inline constexpr LtDialect kHipblasLt{
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
inline constexpr LtDialect kHipblasLtFnuz = [] {
  LtDialect dialect = kHipblasLt;
  dialect.fp8 = 1000;  // HIP_R_8F_E4M3_FNUZ, library_types.h of HIP
  return dialect;
}();

/// CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES and HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES; uint64_t.
inline constexpr int kMostWorkspace = 1;

}  // namespace gpumeter::benchmark::blas
