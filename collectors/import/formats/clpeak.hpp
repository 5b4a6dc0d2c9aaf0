#pragma once

#include <string_view>

#include "base/result.hpp"
#include "collectors/import/sheet.hpp"

namespace gpumeter::import {

/// One figure of clpeak, in any of its forms.
struct ClpeakValue {
  std::string_view backend;  ///< as the file has it: "OpenCL"
  std::string_view test;     ///< "global_memory_bandwidth"
  std::string_view metric;   ///< "float16"
  double value;              ///< in the base unit
  std::string_view unit;     ///< the base unit
};

/// Puts a figure in its place:
/// - reads of the device's memory, and copies by enqueueWriteBuffer, enqueueReadBuffer or pinned memory, are
///   memory bandwidth and transfers; mapping a buffer may copy nothing and is left out;
/// - matrix products of the vendor's library (cublas_gemm, rocblas, hipblaslt, onemkl) are flops;
/// - all else is a result "BACKEND TEST", or "BACKEND TEST METRIC" if the metrics of the test are no widths
/// of
///   one vector.
void take_clpeak(GpuResults& gpu, const ClpeakValue& value);

/// Table of the titles and units of the text of clpeak 1.1, and XML and JSON of all versions.
Result<Sheet> parse_clpeak_text(std::string_view text);
Result<Sheet> parse_clpeak_xml(std::string_view text);
Result<Sheet> parse_clpeak_json(std::string_view text);

}  // namespace gpumeter::import
