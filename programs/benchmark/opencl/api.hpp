#pragma once

// OpenCL 1.2 is what every loader and driver has; all that is used here is in it.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>

#include "base/result.hpp"
#include "collectors/sources/dynamic_library.hpp"

namespace gpumeter::benchmark::opencl {

#define GPUMETER_OPENCL_FUNCTIONS(X) \
  X(clGetPlatformIDs)                \
  X(clGetPlatformInfo)               \
  X(clGetDeviceIDs)                  \
  X(clGetDeviceInfo)                 \
  X(clCreateContext)                 \
  X(clReleaseContext)                \
  X(clCreateCommandQueue)            \
  X(clReleaseCommandQueue)           \
  X(clCreateBuffer)                  \
  X(clReleaseMemObject)              \
  X(clCreateProgramWithSource)       \
  X(clBuildProgram)                  \
  X(clGetProgramBuildInfo)           \
  X(clReleaseProgram)                \
  X(clCreateKernel)                  \
  X(clReleaseKernel)                 \
  X(clSetKernelArg)                  \
  X(clEnqueueNDRangeKernel)          \
  X(clEnqueueReadBuffer)             \
  X(clEnqueueWriteBuffer)            \
  X(clEnqueueCopyBuffer)             \
  X(clEnqueueFillBuffer)             \
  X(clEnqueueMapBuffer)              \
  X(clEnqueueUnmapMemObject)         \
  X(clFinish)                        \
  X(clWaitForEvents)                 \
  X(clGetEventProfilingInfo)         \
  X(clReleaseEvent)

/// The functions of the loader (libOpenCL.so.1), which finds the drivers by the files in
/// /etc/OpenCL/vendors. Their types are those of Khronos' header.
struct Api {
  /// The loader stays open while the Api lives. The Error names a missing function.
  static Result<Api> open(const std::string& library = "libOpenCL.so.1");

  DynamicLibrary library;
#define GPUMETER_OPENCL_MEMBER(name) decltype(&::name) name = nullptr;  // NOLINT(bugprone-macro-parentheses)
  GPUMETER_OPENCL_FUNCTIONS(GPUMETER_OPENCL_MEMBER)
#undef GPUMETER_OPENCL_MEMBER
};

/// "CL_OUT_OF_RESOURCES" for -5; the number if the code is none of OpenCL 1.2.
std::string error_name(cl_int code);

}  // namespace gpumeter::benchmark::opencl
