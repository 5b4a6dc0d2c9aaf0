#include "programs/benchmark/opencl.hpp"

#include <CL/cl_ext.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::benchmark::opencl {
namespace {

struct Name {
  cl_int code;
  const char* text;
};

#define GPUMETER_NAME(code) \
  { code, #code }
constexpr Name kNames[] = {
    GPUMETER_NAME(CL_DEVICE_NOT_FOUND),
    GPUMETER_NAME(CL_DEVICE_NOT_AVAILABLE),
    GPUMETER_NAME(CL_COMPILER_NOT_AVAILABLE),
    GPUMETER_NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    GPUMETER_NAME(CL_OUT_OF_RESOURCES),
    GPUMETER_NAME(CL_OUT_OF_HOST_MEMORY),
    GPUMETER_NAME(CL_PROFILING_INFO_NOT_AVAILABLE),
    GPUMETER_NAME(CL_MAP_FAILURE),
    GPUMETER_NAME(CL_BUILD_PROGRAM_FAILURE),
    GPUMETER_NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    GPUMETER_NAME(CL_INVALID_VALUE),
    GPUMETER_NAME(CL_INVALID_DEVICE),
    GPUMETER_NAME(CL_INVALID_CONTEXT),
    GPUMETER_NAME(CL_INVALID_COMMAND_QUEUE),
    GPUMETER_NAME(CL_INVALID_MEM_OBJECT),
    GPUMETER_NAME(CL_INVALID_PROGRAM),
    GPUMETER_NAME(CL_INVALID_KERNEL_NAME),
    GPUMETER_NAME(CL_INVALID_KERNEL),
    GPUMETER_NAME(CL_INVALID_ARG_INDEX),
    GPUMETER_NAME(CL_INVALID_ARG_SIZE),
    GPUMETER_NAME(CL_INVALID_KERNEL_ARGS),
    GPUMETER_NAME(CL_INVALID_WORK_GROUP_SIZE),
    GPUMETER_NAME(CL_INVALID_BUFFER_SIZE),
};
#undef GPUMETER_NAME

// cl_nv_device_attribute_query; Khronos' header of 2023 lacks these two.
constexpr cl_device_info kPciSlotNv = 0x4009;    // CL_DEVICE_PCI_SLOT_ID_NV: device << 3 | function
constexpr cl_device_info kPciBusNv = 0x4008;     // CL_DEVICE_PCI_BUS_ID_NV
constexpr cl_device_info kPciDomainNv = 0x400A;  // CL_DEVICE_PCI_DOMAIN_ID_NV

template <class T>
std::optional<T> info(const Api& api, cl_device_id device, cl_device_info name) {
  T value{};
  if (api.clGetDeviceInfo(device, name, sizeof value, &value, nullptr) != CL_SUCCESS) return std::nullopt;
  return value;
}

std::string device_text(const Api& api, cl_device_id device, cl_device_info name) {
  std::size_t size = 0;
  if (api.clGetDeviceInfo(device, name, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  if (api.clGetDeviceInfo(device, name, size, text.data(), nullptr) != CL_SUCCESS) return {};
  return std::string(trimmed(text.c_str()));  // NOLINT(readability-redundant-string-cstr): up to the NUL
}

std::string platform_text(const Api& api, cl_platform_id platform) {
  char text[256] = {};
  api.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof text - 1, text, nullptr);
  return text;
}

std::optional<pci::Address> address_by_khronos(const Api& api, cl_device_id device) {
  const auto bus = info<cl_device_pci_bus_info_khr>(api, device, CL_DEVICE_PCI_BUS_INFO_KHR);
  if (!bus) return std::nullopt;
  return pci::Address{bus->pci_domain, static_cast<std::uint8_t>(bus->pci_bus),
                      static_cast<std::uint8_t>(bus->pci_device),
                      static_cast<std::uint8_t>(bus->pci_function)};
}

std::optional<pci::Address> address_by_nvidia(const Api& api, cl_device_id device) {
  const auto bus = info<cl_uint>(api, device, kPciBusNv);
  const auto slot = info<cl_uint>(api, device, kPciSlotNv);
  if (!bus || !slot) return std::nullopt;
  return pci::Address{info<cl_uint>(api, device, kPciDomainNv).value_or(0), static_cast<std::uint8_t>(*bus),
                      static_cast<std::uint8_t>(*slot >> 3U), static_cast<std::uint8_t>(*slot & 7U)};
}

/// Without a domain: AMD's extension has none.
std::optional<pci::Address> address_by_amd(const Api& api, cl_device_id device) {
  const auto found = info<cl_device_topology_amd>(api, device, CL_DEVICE_TOPOLOGY_AMD);
  if (!found || found->raw.type != CL_DEVICE_TOPOLOGY_TYPE_PCIE_AMD) return std::nullopt;
  return pci::Address{0, static_cast<std::uint8_t>(found->pcie.bus),
                      static_cast<std::uint8_t>(found->pcie.device),
                      static_cast<std::uint8_t>(found->pcie.function)};
}

std::optional<pci::Address> address_of(const Api& api, const Device& device) {
  if (device.has("cl_khr_pci_bus_info")) return address_by_khronos(api, device.id);
  if (device.has("cl_nv_device_attribute_query")) return address_by_nvidia(api, device.id);
  if (device.has("cl_amd_device_attribute_query")) return address_by_amd(api, device.id);
  return std::nullopt;
}

Device describe(const Api& api, cl_platform_id platform, cl_device_id id) {
  Device device;
  device.platform = platform;
  device.id = id;
  device.platform_name = platform_text(api, platform);
  device.name = device_text(api, id, CL_DEVICE_NAME);
  device.driver = device_text(api, id, CL_DRIVER_VERSION);
  device.extensions = device_text(api, id, CL_DEVICE_EXTENSIONS);
  device.is_cpu = (info<cl_device_type>(api, id, CL_DEVICE_TYPE).value_or(0) & CL_DEVICE_TYPE_CPU) != 0;
  device.memory = info<cl_ulong>(api, id, CL_DEVICE_GLOBAL_MEM_SIZE).value_or(0);
  device.largest_buffer = info<cl_ulong>(api, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE).value_or(0);
  device.local_memory = info<cl_ulong>(api, id, CL_DEVICE_LOCAL_MEM_SIZE).value_or(0);
  device.largest_group = info<std::size_t>(api, id, CL_DEVICE_MAX_WORK_GROUP_SIZE).value_or(1);
  device.address = address_of(api, device);
  return device;
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): one line a function of the table
Result<Api> Api::open(const std::string& library) {
  Result<DynamicLibrary> opened = DynamicLibrary::open(library);
  if (!opened) return opened.error();
  Api api{*std::move(opened)};
#define GPUMETER_OPENCL_LOAD(name)                          \
  api.name = api.library.symbol<decltype(api.name)>(#name); \
  if (api.name == nullptr) return Error(library + " has no " #name);
  GPUMETER_OPENCL_FUNCTIONS(GPUMETER_OPENCL_LOAD)
#undef GPUMETER_OPENCL_LOAD
  return api;
}

std::string error_name(cl_int code) {
  for (const Name& name : kNames) {
    if (name.code == code) return name.text;
  }
  return "OpenCL error " + std::to_string(code);
}

bool Device::has(std::string_view extension) const noexcept {
  std::string_view rest = extensions;
  while (!rest.empty()) {
    if (take_until(rest, ' ') == extension) return true;
  }
  return false;
}

std::vector<Device> devices(const Api& api) {
  std::vector<Device> all;
  cl_uint platform_count = 0;
  if (api.clGetPlatformIDs(0, nullptr, &platform_count) != CL_SUCCESS || platform_count == 0) return all;
  std::vector<cl_platform_id> platforms(platform_count);
  if (api.clGetPlatformIDs(platform_count, platforms.data(), nullptr) != CL_SUCCESS) return all;
  for (cl_platform_id platform : platforms) {
    cl_uint count = 0;
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(count);
    if (api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr) != CL_SUCCESS) continue;
    for (cl_device_id id : ids) all.push_back(describe(api, platform, id));
  }
  return all;
}

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

template <class Enqueue>
std::optional<double> Session::timed(const char* call, Enqueue enqueue) {
  cl_event event = nullptr;
  if (!good() || !passes(enqueue(&event), call)) return std::nullopt;
  const Owned<_cl_event> owned(event, {api_.clReleaseEvent});
  if (!passes(api_.clWaitForEvents(1, &event), "clWaitForEvents")) return std::nullopt;
  cl_ulong times[2] = {};
  for (const cl_uint which : {0U, 1U}) {
    const cl_profiling_info info = which == 0 ? CL_PROFILING_COMMAND_START : CL_PROFILING_COMMAND_END;
    passes(api_.clGetEventProfilingInfo(event, info, sizeof times[which], &times[which], nullptr),
           "clGetEventProfilingInfo");
  }
  if (!good() || times[1] <= times[0]) return std::nullopt;
  return static_cast<double>(times[1] - times[0]) * 1e-9;
}

std::optional<double> Session::run(const Kernel& kernel, const Range& range) {
  const std::size_t global[] = {range.columns, range.rows};
  const std::size_t local[] = {range.local_columns, range.local_rows};
  return timed("clEnqueueNDRangeKernel", [&](cl_event* event) {
    return api_.clEnqueueNDRangeKernel(queues_[0].get(), kernel.kernel.get(), 2, nullptr, global,
                                       range.local_columns == 0 ? nullptr : local, 0, nullptr, event);
  });
}

std::optional<double> Session::write(const Buffer& to, const void* from, std::size_t bytes) {
  return timed("clEnqueueWriteBuffer", [&](cl_event* event) {
    return api_.clEnqueueWriteBuffer(queues_[0].get(), to.get(), CL_FALSE, 0, bytes, from, 0, nullptr, event);
  });
}

std::optional<double> Session::read(const Buffer& from, void* to, std::size_t bytes) {
  return timed("clEnqueueReadBuffer", [&](cl_event* event) {
    return api_.clEnqueueReadBuffer(queues_[0].get(), from.get(), CL_FALSE, 0, bytes, to, 0, nullptr, event);
  });
}

std::optional<double> Session::copy(const Buffer& from, const Buffer& to, std::size_t bytes) {
  return timed("clEnqueueCopyBuffer", [&](cl_event* event) {
    return api_.clEnqueueCopyBuffer(queues_[0].get(), from.get(), to.get(), 0, 0, bytes, 0, nullptr, event);
  });
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

}  // namespace gpumeter::benchmark::opencl
