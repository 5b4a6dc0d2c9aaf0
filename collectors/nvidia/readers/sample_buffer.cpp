#include "collectors/nvidia/readers/sample_buffer.hpp"

#include <algorithm>
#include <cmath>

#include "collectors/nvidia/readers/field_batch.hpp"

namespace gpumeter::nvidia {
namespace {

constexpr double kMicroseconds = 1e6;  // in a second

// A sample covers the time since the one before, but at most this long: the slowest known buffer has six
// samples a second. A longer interval is a gap in the buffer.
constexpr std::uint64_t kLongest = 1'500'000;

// Known buffers have about 120 entries. A count above the maximum is rejected.
constexpr unsigned kLeastRoom = 128;
constexpr unsigned kMostRoom = 4096;

std::uint64_t microseconds(Nanoseconds time) noexcept {
  return static_cast<std::uint64_t>(to_seconds(time) * kMicroseconds);
}

bool is_sane(double value) noexcept { return std::isfinite(value) && value >= 0; }

const nvml::BufferSample& newest(std::span<const nvml::BufferSample> samples) noexcept {
  return *std::max_element(samples.begin(), samples.end(),
                           [](const auto& a, const auto& b) { return a.timestamp < b.timestamp; });
}

}  // namespace

ReadStatus SampleBuffer::open(NvmlCaller& caller) {
  unsigned count = 0;
  nvml::ValueType type{};
  const unsigned result = caller.call<&NvmlFunctions::nvmlDeviceGetSamples>(unsigned{type_}, std::uint64_t{0},
                                                                            &type, &count, nullptr);
  const bool is_dry = result == nvml::kNotFound || result == nvml::kNoData;
  if (!is_dry && result != nvml::kSuccess) return status_of(result);
  room_.resize(std::clamp(is_dry ? 0 : count, kLeastRoom, kMostRoom));
  settled_.until = 0;
  settled_.restarts = false;
  return ReadStatus::ok;
}

std::span<const nvml::BufferSample> SampleBuffer::read(NvmlCaller& caller, nvml::ValueType& type) noexcept {
  auto count = static_cast<unsigned>(room_.size());
  const unsigned result = caller.call<&NvmlFunctions::nvmlDeviceGetSamples>(unsigned{type_}, counted_.until,
                                                                            &type, &count, room_.data());
  if (result != nvml::kSuccess) return {};
  return {room_.data(), std::min<std::size_t>(count, room_.size())};
}

bool SampleBuffer::drain(NvmlCaller& caller, const Moment& moment) noexcept {
  moment_ = moment;
  counted_ = settled_;
  nvml::ValueType type{};
  const std::span<const nvml::BufferSample> samples = read(caller, type);
  const bool counts = moment.elapsed > Nanoseconds{0};
  bool has_new = !counts && !samples.empty();
  if (has_new) begin_with(samples, type);
  const bool begins = counted_.until == 0 || counted_.restarts;
  if (counts && !samples.empty() && begins) begin_before(samples);
  for (const nvml::BufferSample& sample : samples) has_new = (counts && count(sample, type)) || has_new;
  if (has_new) status_ = ReadStatus::ok;
  return has_new;
}

// The buffer reaches back beyond the observed time, so counting starts at its end.
void SampleBuffer::begin_with(std::span<const nvml::BufferSample> samples, nvml::ValueType type) noexcept {
  const nvml::BufferSample& last = newest(samples);
  counted_.until = last.timestamp;
  counted_.restarts = false;
  if (is_sane(number_of(last.value, type))) extremes_.add(moment_.now, number_of(last.value, type));
}

// The buffer was dry since it was opened, or could not be read. Only the time of this pass may be counted.
void SampleBuffer::begin_before(std::span<const nvml::BufferSample> samples) noexcept {
  counted_.until = std::max(counted_.until, newest(samples).timestamp - microseconds(moment_.elapsed));
  counted_.restarts = false;
}

void SampleBuffer::stand_in(Sample plain) noexcept {
  status_ = plain.status;
  if (plain.status != ReadStatus::ok) return;
  counted_.total += plain.value * to_seconds(moment_.elapsed);
  extremes_.add(moment_.now, plain.value);
  if (counted_.until != 0) counted_.until += microseconds(moment_.elapsed);
}

// A pass observed without this buffer is a gap in this count only.
void SampleBuffer::settle(bool is_observed) noexcept {
  if (is_observed) settled_ = counted_;
  if (is_observed && status_ != ReadStatus::ok) settled_.restarts = true;
}

// Returns false if the sample's time was counted already, or if its value is not valid. The time of an
// invalid sample goes to the next one.
bool SampleBuffer::count(const nvml::BufferSample& sample, nvml::ValueType type) noexcept {
  const double value = number_of(sample.value, type);
  if (sample.timestamp <= counted_.until || !is_sane(value)) return false;
  const std::uint64_t stands_for = std::min(sample.timestamp - counted_.until, kLongest);
  counted_.until = sample.timestamp;
  counted_.total += value * static_cast<double>(stands_for) / kMicroseconds;
  extremes_.add(moment_.now, value);
  return true;
}

}  // namespace gpumeter::nvidia
