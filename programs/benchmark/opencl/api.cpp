#include "programs/benchmark/opencl/api.hpp"

#include <utility>

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

}  // namespace gpumeter::benchmark::opencl
