#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "programs/benchmark/opencl/api.hpp"
#include "programs/benchmark/opencl/device.hpp"

namespace gpumeter::benchmark::opencl {

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
  std::optional<double> finish(cl_event event);

  const Api& api_;
  std::string problem_;
  std::vector<cl_device_id> ids_;
  Owned<_cl_context> context_;
  std::vector<Owned<_cl_command_queue>> queues_;
};

}  // namespace gpumeter::benchmark::opencl
