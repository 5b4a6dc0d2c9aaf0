#pragma once

#include <cstdlib>
#include <string_view>

#include "programs/benchmark/matrix.hpp"

/// $FAKE_BLAS_GPU: hopper, gfx942, gfx950 and gfx1201 have fp8, others have none.
inline std::string_view fake_gpu() {
  const char* const name = std::getenv("FAKE_BLAS_GPU");
  return name == nullptr ? "" : name;
}

/// c = transposed a * b by columns, as all libraries are asked for it. Returns 0.
int gemm(gpumeter::benchmark::Element factor, gpumeter::benchmark::Element sum, int size, const void* a,
         const void* b, void* c);
