#pragma once

#include <string>
#include <vector>

#include "collectors/sources/pci.hpp"
#include "programs/benchmark/measure.hpp"

namespace gpumeter::benchmark::blas {

/// Measures matrix products with the vendor's library: cuBLAS and cublasLt, otherwise rocBLAS and hipBLASLt.
/// Only these reach the matrix units, which OpenCL does not have. The outcome has a note if there is none for
/// the GPU, and for each type that the library lacks. The libraries are first sought in the folders.
void measure(const std::vector<std::string>& folders, const pci::Address& address, const Pace& pace,
             Faults faults, Outcome& outcome);

}  // namespace gpumeter::benchmark::blas
