#include <algorithm>

#include "tests/fakes/nvml/call.hpp"

// nvmlDeviceGetSamples: the buffers that the driver fills between the calls.

namespace gpumeter::fake_nvml {
namespace {

using nvml::BufferSample;

// NVML_*_SAMPLES
constexpr const char* kBuffers[] = {"power",    "gpu",          "memory",       "encoder", "decoder",
                                    "sm_clock", "memory_clock", "module_power", "jpeg",    "ofa"};

bool is_dry(const Call& call, const std::string& buffer, double time) {
  const std::string path = buffer + ".dry";
  for (std::size_t i = 0; i < call.count(path); ++i) {
    const std::string of = path + "." + std::to_string(i);
    if (time >= static_cast<double>(call.at(of + ".0").number) &&
        time < static_cast<double>(call.at(of + ".1").number)) {
      return true;
    }
  }
  return false;
}

/// The newest samples that fit into the buffer, oldest first. Each is the mean of the period that ends with
/// it.
std::vector<BufferSample> filled(const Call& call, const std::string& buffer, std::uint64_t last_seen) {
  const double period = static_cast<double>(call.at(buffer + ".period_ms").number) / 1e3;
  const auto capacity = to<std::int64_t>(call.at(buffer + ".capacity"));
  const ValueOverTime* value = call.find(buffer + ".value");
  std::vector<BufferSample> samples;
  if (value == nullptr || period <= 0) return samples;
  const auto newest = static_cast<std::int64_t>(call.now() / period + 1e-9);
  for (std::int64_t k = std::max<std::int64_t>(1, newest - capacity + 1); k <= newest; ++k) {
    const double begin = static_cast<double>(k - 1) * period, end = static_cast<double>(k) * period;
    const auto stamp =
        static_cast<std::uint64_t>(Library::instance().clock.epoch_usec() + std::llround(end * 1e6));
    if (stamp <= last_seen || is_dry(call, buffer, end)) continue;
    BufferSample sample{.timestamp = stamp, .value = {}};
    sample.value.as_ulong = 0;
    const Number mean = (value->integral(end) - value->integral(begin)) / static_cast<Number>(period);
    sample.value.as_uint = to<unsigned>(Value{.number = mean});
    samples.push_back(sample);
  }
  return samples;
}

}  // namespace

FAKE_NVML_EXPORT unsigned nvmlDeviceGetSamples(nvml::Device device, unsigned which, std::uint64_t last_seen,
                                               nvml::ValueType* type, unsigned* count, BufferSample* out) {
  return on_device("nvmlDeviceGetSamples", device, [&](const Call& call) -> unsigned {
    if (which >= std::size(kBuffers) || type == nullptr || count == nullptr) return nvml::kInvalidArgument;
    const std::string buffer = std::string("samples.") + kBuffers[which];
    const Value value = call.at(buffer + ".value");
    if (value.error != nvml::kSuccess) return value.error;
    *type = nvml::ValueType::uint;
    if (out == nullptr) return call.read(buffer + ".capacity", count);
    const auto samples = filled(call, buffer, last_seen);
    if (samples.empty()) return nvml::kNotFound;
    *count = std::min(*count, static_cast<unsigned>(samples.size()));
    std::copy_n(samples.begin(), *count, out);
    return nvml::kSuccess;
  });
}

}  // namespace gpumeter::fake_nvml
