// libcuda.so.1, libcublas.so.12, libamdhip64.so.6 and librocblas.so.4 in one library, which computes on the
// processor; fake_lt.cpp adds the libraries for fp8. Made from the documented ABI (cuda.h, cublas_api.h,
// hip_runtime_api.h, rocblas-types.h); nothing of the vendors' is in it.
//
// $FAKE_BLAS: "cuda" or "hip", the driver that has the GPU 0000:0c:00.0. int8 is refused by "cuda", bf16 by
// "hip".
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string_view>
#include <vector>

#include "fake.hpp"
#include "programs/benchmark/matrix.hpp"

namespace {

using namespace gpumeter::benchmark;
using Clock = std::chrono::steady_clock;

constexpr int kNoDevice = 100;  // CUDA_ERROR_NO_DEVICE, hipErrorNoDevice

struct Event {
  Clock::time_point at;
};

bool is_driver(std::string_view name) {
  const char* const driver = std::getenv("FAKE_BLAS");
  return driver != nullptr && name == driver;
}
int find_device(const char* address, int* device) {
  *device = 0;
  return std::string_view(address) == "0000:0c:00.0" ? 0 : kNoDevice;
}
void* new_event() {
  static std::deque<Event> events;  // their users never give them back
  return &events.emplace_back();
}

int elapsed(float* milliseconds, void* first, void* second) {
  const auto* const begin = static_cast<Event*>(first);
  const auto* const end = static_cast<Event*>(second);
  *milliseconds = std::chrono::duration<float, std::milli>(end->at - begin->at).count();
  return 0;
}

template <class T>
T read(const void* memory) {
  T value;
  std::memcpy(&value, memory, sizeof value);
  return value;
}
float value(Element element, const void* memory) {
  switch (element) {
    case Element::fp64:
      return static_cast<float>(read<double>(memory));  // the benchmark's values are exact in every type
    case Element::fp32:
      return read<float>(memory);
    case Element::fp16:
      return from_half(read<std::uint16_t>(memory));
    case Element::bf16:
      return from_bfloat(read<std::uint16_t>(memory));
    case Element::int8:
      return read<std::int8_t>(memory);
    case Element::int32:
      return static_cast<float>(read<std::int32_t>(memory));
    case Element::e4m3:
      return from_fp8(Fp8::e4m3, read<std::uint8_t>(memory));
    case Element::e4m3_fnuz:
      return from_fp8(Fp8::e4m3_fnuz, read<std::uint8_t>(memory));
  }
  return 0;
}
std::vector<float> plain(Element element, const void* memory, std::size_t count) {
  std::vector<float> values(count);
  const std::size_t size = size_of(element);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = value(element, static_cast<const std::byte*>(memory) + i * size);
  return values;
}

template <class Sum>
void product(std::size_t n, const std::vector<float>& a, const std::vector<float>& b, void* c) {
  for (std::size_t column = 0; column < n; ++column) {
    for (std::size_t row = 0; row < n; ++row) {
      Sum sum = 0;
      for (std::size_t k = 0; k < n; ++k)
        sum += static_cast<Sum>(a[row * n + k]) * static_cast<Sum>(b[column * n + k]);
      std::memcpy(static_cast<std::byte*>(c) + (column * n + row) * sizeof sum, &sum, sizeof sum);
    }
  }
}

}  // namespace

int gemm(Element factor, Element sum, int size, const void* a, const void* b, void* c) {
  const auto n = static_cast<std::size_t>(size);
  const auto left = plain(factor, a, n * n);
  const auto right = plain(factor, b, n * n);
  if (sum == Element::fp64) product<double>(n, left, right, c);
  if (sum == Element::fp32) product<float>(n, left, right, c);
  if (sum == Element::int32) product<std::int32_t>(n, left, right, c);
  return 0;
}

extern "C" {
int cuInit(unsigned) { return is_driver("cuda") ? 0 : kNoDevice; }
int cuDriverGetVersion(int* version) { return *version = 12040, 0; }
int cuDeviceGetByPCIBusId(int* device, const char* address) { return find_device(address, device); }
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = nullptr, 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuMemAlloc_v2(void** memory, std::size_t size) {
  return (*memory = std::malloc(size)) == nullptr ? 2 : 0;
}
int cuMemFree_v2(void* memory) { return std::free(memory), 0; }
int cuMemcpyHtoD_v2(void* to, const void* from, std::size_t size) { return std::memcpy(to, from, size), 0; }
int cuMemcpyDtoH_v2(void* to, const void* from, std::size_t size) { return std::memcpy(to, from, size), 0; }
int cuEventCreate(void** event, unsigned) { return *event = new_event(), 0; }
int cuEventRecord(void* event, void*) { return static_cast<Event*>(event)->at = Clock::now(), 0; }
int cuEventSynchronize(void*) { return 0; }
int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  return elapsed(milliseconds, begin, end);
}

int cublasCreate_v2(void** handle) { return *handle = nullptr, 0; }
int cublasGetVersion_v2(void*, int* version) { return *version = 120402, 0; }
int cublasGemmEx(void*, int a_form, int b_form, int m, int n, int k, const void* alpha, const void* a,
                 int a_type, int, const void* b, int b_type, int, const void*, void* c, int c_type, int,
                 int compute, int) {
  if (a_form != 1 || b_form != 0 || m != n || n != k || a_type != b_type)
    return 7;  // CUBLAS_STATUS_INVALID_VALUE
  float one = 0;
  std::memcpy(&one, alpha, sizeof one);
  if (a_type == 3) return 15;  // CUBLAS_STATUS_NOT_SUPPORTED
  if (a_type == 1 && c_type == 1 && compute == 70) return gemm(Element::fp64, Element::fp64, n, a, b, c);
  if (c_type != 0 || (compute != 68 && compute != 77) || one != 1) return 7;
  if (a_type == 0) return gemm(Element::fp32, Element::fp32, n, a, b, c);
  if (a_type == 2) return gemm(Element::fp16, Element::fp32, n, a, b, c);
  return a_type == 14 ? gemm(Element::bf16, Element::fp32, n, a, b, c) : 7;
}

int hipInit(unsigned) { return is_driver("hip") ? 0 : kNoDevice; }
int hipDeviceGetByPCIBusId(int* device, const char* address) { return find_device(address, device); }
int hipDeviceComputeCapability(int* major, int* minor, int) {
  const std::string_view gpu = fake_gpu();
  *major = gpu == "gfx1201" ? 12 : 9;
  *minor = gpu == "gfx942" ? 4 : gpu == "gfx950" ? 5 : 0;
  return 0;
}
int hipSetDevice(int) { return 0; }
int hipMalloc(void** memory, std::size_t size) { return (*memory = std::malloc(size)) == nullptr ? 2 : 0; }
int hipFree(void* memory) { return std::free(memory), 0; }
int hipMemcpyHtoD(void* to, const void* from, std::size_t size) { return std::memcpy(to, from, size), 0; }
int hipMemcpyDtoH(void* to, const void* from, std::size_t size) { return std::memcpy(to, from, size), 0; }
int hipEventCreateWithFlags(void** event, unsigned) { return *event = new_event(), 0; }
int hipEventRecord(void* event, void*) { return static_cast<Event*>(event)->at = Clock::now(), 0; }
int hipEventSynchronize(void*) { return 0; }
int hipEventElapsedTime(float* milliseconds, void* begin, void* end) {
  return elapsed(milliseconds, begin, end);
}

int rocblas_create_handle(void** handle) { return *handle = nullptr, 0; }
int rocblas_get_version_string(char* text, std::size_t size) { return std::strncpy(text, "4.2.0", size), 0; }
int rocblas_gemm_ex(void*, int a_form, int b_form, int m, int n, int k, const void*, const void* a,
                    int a_type, int, const void* b, int b_type, int, const void*, const void* c, int c_type,
                    int, void* d, int d_type, int, int compute, int, std::int32_t, std::uint32_t) {
  if (a_form != 112 || b_form != 111 || m != n || n != k || a_type != b_type || c != d || c_type != d_type)
    return 11;
  if (a_type == 168) return 2;  // rocblas_status_not_implemented
  if (a_type == 152 && d_type == 152 && compute == 152) return gemm(Element::fp64, Element::fp64, n, a, b, d);
  if (a_type == 160 && d_type == 162 && compute == 162)
    return gemm(Element::int8, Element::int32, n, a, b, d);
  if (d_type != 151 || compute != 151) return 11;
  if (a_type == 151) return gemm(Element::fp32, Element::fp32, n, a, b, d);
  return a_type == 150 ? gemm(Element::fp16, Element::fp32, n, a, b, d) : 11;
}
}
