#include "collectors/nvidia/readers/gpm_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

namespace gpumeter::nvidia {
namespace {

// "Samples must be > 100 ms apart" (nvml.h at nvmlGpmMetricsGet); the margin allows for clock differences.
constexpr auto kApart = std::chrono::milliseconds(110);

Nanoseconds now() noexcept { return std::chrono::steady_clock::now().time_since_epoch(); }

}  // namespace

void GpmSampler::open(const NvmlCaller& caller, std::optional<unsigned> gpu_instance) {
  close();
  caller_ = caller;
  gpu_instance_ = gpu_instance;
  opened_ = prepare();
  if (opened_ != ReadStatus::ok) close();
}

ReadStatus GpmSampler::prepare() {
  nvml::GpmSupport support{};
  const unsigned asked = caller_.call<&NvmlFunctions::nvmlGpmQueryDeviceSupport>(&support);
  if (asked != nvml::kSuccess) return status_of(asked);
  if (support.is_supported == 0) return ReadStatus::unsupported;
  for (nvml::GpmSample& sample : samples_) {
    const unsigned allocated = caller_.call_plain<&NvmlFunctions::nvmlGpmSampleAlloc>(&sample);
    if (allocated != nvml::kSuccess) return status_of(allocated);
  }
  metrics_ = std::make_unique<nvml::GpmMetricsGet>();
  return status_of(take(samples_[1]));
}

// A sample is memory of the library, which stays valid after its driver is gone.
void GpmSampler::close() noexcept {
  const std::shared_ptr<NvmlSession> session = caller_.session();
  for (nvml::GpmSample& sample : samples_) {
    if (sample != nullptr) session->functions().nvmlGpmSampleFree(sample);
    sample = nullptr;
  }
  taken_ = {};
  metrics_.reset();
  caller_ = {};
}

std::optional<int> GpmSampler::add(unsigned metric) {
  if (!is_open() || metrics_->count == nvml::GpmMetricsGet::kMost) return std::nullopt;
  metrics_->metrics[metrics_->count] = {metric, nvml::kNotReady, 0, nullptr, nullptr, nullptr};
  ++metrics_->count;
  if (samples_[0] == nullptr || taken_[0] == Nanoseconds{0}) {
    std::this_thread::sleep_for(std::max<Nanoseconds>(Nanoseconds{0}, taken_[1] + kApart - now()));
    is_fresh_ = false;
    advance();
  } else {
    result_ = compute();
  }
  is_fresh_ = true;
  const int place = static_cast<int>(metrics_->count) - 1;
  if (!is_lacking(read(place).status)) return place;
  --metrics_->count;
  return std::nullopt;
}

unsigned GpmSampler::take(nvml::GpmSample sample) noexcept {
  const unsigned result = gpu_instance_
                              ? caller_.call<&NvmlFunctions::nvmlGpmMigSampleGet>(*gpu_instance_, sample)
                              : caller_.call<&NvmlFunctions::nvmlGpmSampleGet>(sample);
  if (result == nvml::kSuccess) taken_[sample == samples_[0] ? 0 : 1] = now();
  return result;
}

// The new sample overwrites the older one's memory; the two then change places.
void GpmSampler::advance() noexcept {
  if (is_fresh_ || now() < taken_[1] + kApart) return;
  is_fresh_ = true;
  result_ = take(samples_[0]);
  if (result_ != nvml::kSuccess) return;
  std::swap(samples_[0], samples_[1]);
  std::swap(taken_[0], taken_[1]);
  interval_ = to_seconds(taken_[1] - taken_[0]);
  result_ = compute();
}

unsigned GpmSampler::compute() noexcept {
  metrics_->first = samples_[0];
  metrics_->second = samples_[1];
  return caller_.call_plain<&NvmlFunctions::nvmlGpmMetricsGet>(metrics_.get());
}

Sample GpmSampler::read(int place) noexcept {
  advance();
  if (const ReadStatus status = status_of(result_); status != ReadStatus::ok) return Sample::miss(status);
  const nvml::GpmMetric& metric = metrics_->metrics[place];
  const ReadStatus status = status_of(metric.result);
  if (status != ReadStatus::ok) return Sample::miss(status);
  const bool is_sane = std::isfinite(metric.value) && metric.value >= 0;
  return is_sane ? Sample::of(metric.value) : Sample::miss(ReadStatus::out_of_range);
}

}  // namespace gpumeter::nvidia
