#pragma once

// OpenCL 1.2 is what every loader and driver has; all that is used here is in it.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "collectors/sources/dynamic_library.hpp"
#include "collectors/sources/pci.hpp"
#include "programs/benchmark/measure.hpp"

namespace gpumeter::benchmark::opencl {

/// Which device to measure.
struct Choice {
  bool is_cpu = false;  ///< the first CPU device; otherwise the GPU with this address
  pci::Address address;
  std::vector<pci::Address> idle_peers;  ///< GPUs that nobody uses: the target of transfers between devices
};

/// Measures a device by OpenCL. The outcome has a note if no driver knows the device.
void measure(const Choice& choice, const Pace& pace, Outcome& outcome);

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

/// A device of a driver.
struct Device {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  std::string platform_name;
  std::string name;
  std::string driver;      ///< version of the driver
  std::string extensions;  ///< separated by blanks
  bool is_cpu = false;
  std::optional<pci::Address> address;
  std::uint64_t memory = 0;          ///< bytes
  std::uint64_t largest_buffer = 0;  ///< bytes
  std::uint64_t local_memory = 0;    ///< bytes of a work-group
  std::size_t largest_group = 0;     ///< work-items

  bool has(std::string_view extension) const noexcept;
};

/// All devices of all drivers. Loads the drivers. Address: cl_khr_pci_bus_info, or the vendors' older
/// extensions cl_nv_device_attribute_query and cl_amd_device_attribute_query.
std::vector<Device> devices(const Api& api);

template <class T>
struct Releaser {
  cl_int(CL_API_CALL* release)(T*) = nullptr;
  void operator()(T* object) const noexcept { release(object); }
};
template <class T>
using Owned = std::unique_ptr<T, Releaser<T>>;
using Buffer = Owned<_cl_mem>;

/// A kernel with its program.
struct Kernel {
  Owned<_cl_program> program;
  Owned<_cl_kernel> kernel;
  explicit operator bool() const noexcept { return kernel != nullptr; }
};

/// Work-items in one or two dimensions. A local size of 0 is the driver's choice.
struct Range {
  std::size_t columns = 1;
  std::size_t rows = 1;
  std::size_t local_columns = 0;
  std::size_t local_rows = 0;
};

/// A context with one queue on each of its devices. The first error stays: `problem()` names it, and calls
/// after it do nothing and return null, false or nullopt. One thread.
class Session {
 public:
  /// The first device is the one that is measured.
  Session(const Api& api, const std::vector<Device>& devices);

  bool good() const noexcept { return problem_.empty(); }
  const std::string& problem() const noexcept { return problem_; }
  /// Forgets the error: the next test begins.
  void clear() { problem_.clear(); }

  Buffer buffer(std::size_t bytes, cl_mem_flags flags = CL_MEM_READ_WRITE);
  Kernel kernel(const std::string& source, const std::string& options, const char* name);

  template <class... Arguments>
  void set(const Kernel& kernel, const Arguments&... arguments) {
    cl_uint index = 0;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): a buffer is passed as its handle
    (set_one(kernel, index++, sizeof arguments, &arguments), ...);
  }

  // These wait for their end and return the time that the device measured, in seconds.
  std::optional<double> run(const Kernel& kernel, const Range& range);
  std::optional<double> write(const Buffer& to, const void* from, std::size_t bytes);
  std::optional<double> read(const Buffer& from, void* to, std::size_t bytes);
  std::optional<double> copy(const Buffer& from, const Buffer& to, std::size_t bytes);
  /// `queue`: of the device that owns the memory from now on.
  bool fill(const Buffer& to, cl_uint word, std::size_t bytes, std::size_t queue = 0);

  /// Memory of the host that the driver can read and write directly.
  void* map(const Buffer& buffer, std::size_t bytes);
  void unmap(const Buffer& buffer, void* memory);

 private:
  bool passes(cl_int code, const char* call);
  void set_one(const Kernel& kernel, cl_uint index, std::size_t size, const void* value);
  template <class Enqueue>
  std::optional<double> timed(const char* call, Enqueue enqueue);

  const Api& api_;
  std::string problem_;
  std::vector<cl_device_id> ids_;
  Owned<_cl_context> context_;
  std::vector<Owned<_cl_command_queue>> queues_;
};

}  // namespace gpumeter::benchmark::opencl
