#include <algorithm>

#include "tests/fakes/nvml/call.hpp"

// The processes on a GPU: the lists, and the driver's utilization samples.

namespace gpumeter::fake_nvml {
namespace {

constexpr const char* kLists[] = {"processes.compute", "processes.graphics", "processes.mps"};

std::string entry(const char* list, std::size_t i) {
  return std::string(list) + "." + std::to_string(i) + ".";
}

/// The paths of the processes that exist now.
std::vector<std::string> present(const Call& call, const char* list) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < call.count(list); ++i) {
    if (or_else(call, entry(list, i) + "present", 1U) != 0) paths.push_back(entry(list, i));
  }
  return paths;
}

/// With a stride of 32, also writes the last 8 bytes, as the driver did.
void write(const Call& call, const std::string& of, std::size_t stride, char* out) {
  const nvml::WideProcessInfo info{
      or_else(call, of + "pid", 0U), or_else(call, of + "memory", nvml::kValueNotAvailable),
      or_else(call, of + "gi", nvml::kNoInstance), or_else(call, of + "ci", nvml::kNoInstance), 0};
  std::memcpy(out, &info, stride);
}

unsigned running(const char* function, nvml::Device device, const char* list, unsigned* count, void* out) {
  return on_device(function, device, [&](const Call& call) -> unsigned {
    if (count == nullptr) return nvml::kInvalidArgument;
    if (!call.lists(list)) return nvml::kNotSupported;
    const std::vector<std::string> paths = present(call, list);
    const unsigned room = *count;
    *count = static_cast<unsigned>(paths.size());
    if (room < *count) return nvml::kInsufficientSize;
    const std::size_t stride = call.scenario().layout("process_info", sizeof(nvml::ProcessInfo));
    for (unsigned i = 0; i < *count; ++i) write(call, paths[i], stride, static_cast<char*>(out) + i * stride);
    return nvml::kSuccess;
  });
}

bool is_dry(const Call& call, double time) {
  const std::string path = "processes.samples.dry";
  for (std::size_t i = 0; i < call.count(path); ++i) {
    const std::string of = path + "." + std::to_string(i);
    if (time > static_cast<double>(call.at(of + ".0").number) &&
        time <= static_cast<double>(call.at(of + ".1").number)) {
      return true;
    }
  }
  return false;
}

std::uint64_t stamp(double time) {
  return static_cast<std::uint64_t>(Library::instance().clock.epoch_usec() + std::llround(time * 1e6));
}

/// The ends of the sampling periods that the driver remembers and that are newer than `last_seen`, oldest
/// first.
std::vector<double> remembered(const Call& call, double period, std::uint64_t last_seen) {
  const auto capacity = or_else(call, "processes.samples.capacity", std::size_t{72});
  std::vector<double> ends;
  for (auto k = static_cast<std::int64_t>(call.now() / period + 1e-9); k > 0 && ends.size() < capacity; --k) {
    const double end = static_cast<double>(k) * period;
    if (!is_dry(call, end)) ends.push_back(end);
  }
  std::erase_if(ends, [&](double end) { return stamp(end) <= last_seen; });
  std::reverse(ends.begin(), ends.end());
  return ends;
}

struct Utilization {
  unsigned pid, sm;
  std::uint64_t timestamp;
};

/// The utilization of one active process: the mean over all samples, and the time of its last sample.
std::optional<Utilization> utilization(const Call& call, const std::string& of, double period,
                                       const std::vector<double>& ends) {
  const ValueOverTime* sm = call.find(of + "sm");
  Number sum = 0;
  double last = 0;
  for (const double end : ends) {
    const Number mean = sm == nullptr ? 0 : (sm->integral(end) - sm->integral(end - period)) / Number{period};
    sum += mean;
    if (mean > 0) last = end;
  }
  if (last == 0) return std::nullopt;
  const auto mean = to<unsigned>(Value{.number = sum / static_cast<Number>(ends.size())});
  return Utilization{or_else(call, of + "pid", 0U), mean, stamp(last)};
}

/// Calls put(place, utilization) for each process, or returns the error. `count`: first the room, then the
/// number of processes.
template <class Put>
unsigned samples(const Call& call, unsigned& count, std::uint64_t last_seen, Put put) {
  const Value period = call.at("processes.samples.period_ms");
  if (call.handle().instance != 0 || or_else(call, "mig.mode", 0U) != 0) return nvml::kNotSupported;
  if (period.error != nvml::kSuccess) return period.error;
  const double seconds = static_cast<double>(period.number) / 1e3;
  const std::vector<double> ends = remembered(call, seconds, last_seen);
  std::vector<Utilization> found;
  for (const char* list : kLists) {
    for (const std::string& of : present(call, list)) {
      if (const auto one = utilization(call, of, seconds, ends)) found.push_back(*one);
    }
  }
  if (found.empty()) return nvml::kNotFound;
  const unsigned room = count;
  count = static_cast<unsigned>(found.size());
  if (room < count) return nvml::kInsufficientSize;
  for (std::size_t i = 0; i < found.size(); ++i) put(i, found[i]);
  return nvml::kSuccess;
}

}  // namespace

FAKE_NVML_EXPORT unsigned nvmlDeviceGetComputeRunningProcesses_v3(nvml::Device device, unsigned* count,
                                                                  void* out) {
  return running("nvmlDeviceGetComputeRunningProcesses_v3", device, kLists[0], count, out);
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetGraphicsRunningProcesses_v3(nvml::Device device, unsigned* count,
                                                                   void* out) {
  return running("nvmlDeviceGetGraphicsRunningProcesses_v3", device, kLists[1], count, out);
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetMPSComputeRunningProcesses_v3(nvml::Device device, unsigned* count,
                                                                     void* out) {
  return running("nvmlDeviceGetMPSComputeRunningProcesses_v3", device, kLists[2], count, out);
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetProcessesUtilizationInfo(nvml::Device device,
                                                                nvml::ProcessesUtilization* query) {
  return on_device("nvmlDeviceGetProcessesUtilizationInfo", device, [&](const Call& call) -> unsigned {
    if (query == nullptr) return nvml::kInvalidArgument;
    if (query->version != nvml::version_of<nvml::ProcessesUtilization>(1))
      return nvml::kArgumentVersionMismatch;
    return samples(call, query->count, query->last_seen, [&](std::size_t i, const Utilization& one) {
      query->samples[i] = {one.timestamp, one.pid, one.sm, 0, 0, 0, 0, 0};
    });
  });
}

FAKE_NVML_EXPORT unsigned nvmlDeviceGetProcessUtilization(nvml::Device device, nvml::ProcessUtilization* out,
                                                          unsigned* count, std::uint64_t last_seen) {
  return on_device("nvmlDeviceGetProcessUtilization", device, [&](const Call& call) -> unsigned {
    if (count == nullptr) return nvml::kInvalidArgument;
    return samples(call, *count, last_seen, [&](std::size_t i, const Utilization& one) {
      out[i] = {one.pid, one.timestamp, one.sm, 0, 0, 0};
    });
  });
}

}  // namespace gpumeter::fake_nvml
