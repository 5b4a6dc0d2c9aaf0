#include "programs/benchmark/opencl/session.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace gpumeter::benchmark::opencl {

Session::Session(const Api& api, const std::vector<Device>& devices) : api_(api) {
  for (const Device& device : devices) ids_.push_back(device.id);
  cl_int code = CL_SUCCESS;
  context_ = {
      api.clCreateContext(nullptr, static_cast<cl_uint>(ids_.size()), ids_.data(), nullptr, nullptr, &code),
      {api.clReleaseContext}};
  if (!passes(code, "clCreateContext")) return;
  for (cl_device_id id : ids_) {
    queues_.push_back({api.clCreateCommandQueue(context_.get(), id, CL_QUEUE_PROFILING_ENABLE, &code),
                       {api.clReleaseCommandQueue}});
    if (!passes(code, "clCreateCommandQueue")) return;
  }
}

bool Session::passes(cl_int code, const char* call) {
  if (code != CL_SUCCESS && problem_.empty()) problem_ = std::string(call) + ": " + error_name(code);
  return good();
}

Buffer Session::buffer(std::size_t bytes, cl_mem_flags flags) {
  if (!good()) return {};
  cl_int code = CL_SUCCESS;
  Buffer made(api_.clCreateBuffer(context_.get(), flags, bytes, nullptr, &code), {api_.clReleaseMemObject});
  passes(code, "clCreateBuffer");
  return made;
}

Kernel Session::kernel(const std::string& source, const std::string& options, const char* name) {
  Kernel made;
  if (!good()) return made;
  const char* text = source.c_str();
  cl_int code = CL_SUCCESS;
  made.program = {api_.clCreateProgramWithSource(context_.get(), 1, &text, nullptr, &code),
                  {api_.clReleaseProgram}};
  if (!passes(code, "clCreateProgramWithSource")) return made;
  code = api_.clBuildProgram(made.program.get(), 1, ids_.data(), options.c_str(), nullptr, nullptr);
  if (code != CL_SUCCESS) {
    std::vector<char> log(4096, '\0');
    api_.clGetProgramBuildInfo(made.program.get(), ids_[0], CL_PROGRAM_BUILD_LOG, log.size() - 1, log.data(),
                               nullptr);
    problem_ = std::string("clBuildProgram: ") + error_name(code) + ": " + std::string(trimmed(log.data()));
    std::ranges::replace(problem_, '\n', ' ');
    return made;
  }
  made.kernel = {api_.clCreateKernel(made.program.get(), name, &code), {api_.clReleaseKernel}};
  passes(code, "clCreateKernel");
  return made;
}

void Session::set_one(const Kernel& kernel, cl_uint index, std::size_t size, const void* value) {
  if (good()) passes(api_.clSetKernelArg(kernel.kernel.get(), index, size, value), "clSetKernelArg");
}

std::optional<double> Session::run(const Kernel& kernel, const Range& range) {
  if (!good()) return std::nullopt;
  const std::size_t global[] = {range.columns, range.rows};
  const std::size_t local[] = {range.local_columns, range.local_rows};
  cl_event event = nullptr;
  const cl_int code =
      api_.clEnqueueNDRangeKernel(queues_[0].get(), kernel.kernel.get(), 2, nullptr, global,
                                  range.local_columns == 0 ? nullptr : local, 0, nullptr, &event);
  return passes(code, "clEnqueueNDRangeKernel") ? finish(event) : std::nullopt;
}

std::optional<double> Session::write(const Buffer& to, const void* from, std::size_t bytes) {
  if (!good()) return std::nullopt;
  cl_event event = nullptr;
  const cl_int code =
      api_.clEnqueueWriteBuffer(queues_[0].get(), to.get(), CL_FALSE, 0, bytes, from, 0, nullptr, &event);
  return passes(code, "clEnqueueWriteBuffer") ? finish(event) : std::nullopt;
}

std::optional<double> Session::read(const Buffer& from, void* to, std::size_t bytes) {
  if (!good()) return std::nullopt;
  cl_event event = nullptr;
  const cl_int code =
      api_.clEnqueueReadBuffer(queues_[0].get(), from.get(), CL_FALSE, 0, bytes, to, 0, nullptr, &event);
  return passes(code, "clEnqueueReadBuffer") ? finish(event) : std::nullopt;
}

std::optional<double> Session::copy(const Buffer& from, const Buffer& to, std::size_t bytes) {
  if (!good()) return std::nullopt;
  cl_event event = nullptr;
  const cl_int code =
      api_.clEnqueueCopyBuffer(queues_[0].get(), from.get(), to.get(), 0, 0, bytes, 0, nullptr, &event);
  return passes(code, "clEnqueueCopyBuffer") ? finish(event) : std::nullopt;
}

bool Session::fill(const Buffer& to, cl_uint word, std::size_t bytes, std::size_t queue) {
  if (!good()) return false;
  const cl_int code = api_.clEnqueueFillBuffer(queues_[queue].get(), to.get(), &word, sizeof word, 0, bytes,
                                               0, nullptr, nullptr);
  return passes(code, "clEnqueueFillBuffer") && passes(api_.clFinish(queues_[queue].get()), "clFinish");
}

void* Session::map(const Buffer& buffer, std::size_t bytes) {
  if (!good()) return nullptr;
  cl_int code = CL_SUCCESS;
  void* const memory =
      api_.clEnqueueMapBuffer(queues_[0].get(), buffer.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes,
                              0, nullptr, nullptr, &code);
  return passes(code, "clEnqueueMapBuffer") ? memory : nullptr;
}

void Session::unmap(const Buffer& buffer, void* memory) {
  if (memory == nullptr) return;
  const cl_int code =
      api_.clEnqueueUnmapMemObject(queues_[0].get(), buffer.get(), memory, 0, nullptr, nullptr);
  if (passes(code, "clEnqueueUnmapMemObject")) passes(api_.clFinish(queues_[0].get()), "clFinish");
}

std::optional<double> Session::finish(cl_event event) {
  const Owned<_cl_event> owned(event, {api_.clReleaseEvent});
  cl_ulong begin = 0;
  cl_ulong end = 0;
  if (!passes(api_.clWaitForEvents(1, &event), "clWaitForEvents")) return std::nullopt;
  const cl_int first =
      api_.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begin, &begin, nullptr);
  const cl_int second =
      api_.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr);
  if (!passes(first, "clGetEventProfilingInfo") || !passes(second, "clGetEventProfilingInfo"))
    return std::nullopt;
  return end > begin ? std::optional(static_cast<double>(end - begin) * 1e-9) : std::nullopt;
}

}  // namespace gpumeter::benchmark::opencl
