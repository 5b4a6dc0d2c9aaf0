#include "collectors/nvidia/sources.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <thread>
#include <utility>

#include "collectors/nvidia/nvml/session.hpp"

namespace gpumeter::nvidia {
namespace {

unsigned ask(NvmlCaller& caller, nvml::FieldValue* fields, std::size_t count) noexcept {
  return caller.call<&NvmlFunctions::nvmlDeviceGetFieldValues>(static_cast<int>(count), fields);
}

}  // namespace

Sample sample_of(const nvml::FieldValue& field) noexcept {
  const ReadStatus status = status_of(field.result);
  if (status != ReadStatus::ok) return Sample::miss(status);
  const double value = number_of(field.value, field.type);
  return std::isfinite(value) ? Sample::of(value) : Sample::miss(ReadStatus::out_of_range);
}

int FieldBatch::add(unsigned field, unsigned scope) {
  nvml::FieldValue value{};
  value.field = field;
  value.scope = scope;
  values_.push_back(value);
  return static_cast<int>(values_.size()) - 1;
}

Sample FieldBatch::read(NvmlCaller& caller, int place) noexcept {
  if (!is_fresh_) result_ = ask(caller, values_.data(), values_.size());
  is_fresh_ = true;
  if (const ReadStatus status = status_of(result_); status != ReadStatus::ok) return Sample::miss(status);
  const nvml::FieldValue& field = values_[static_cast<std::size_t>(place)];
  caller.blame(field.result);
  return sample_of(field);
}

FieldReading read_field(NvmlCaller& caller, unsigned field, unsigned scope) noexcept {
  nvml::FieldValue value{};
  value.field = field;
  value.scope = scope;
  const ReadStatus status = status_of(ask(caller, &value, 1));
  caller.blame(value.result);
  return {status == ReadStatus::ok ? sample_of(value) : Sample::miss(status), value.type};
}

double number_of(const nvml::Value& value, nvml::ValueType type) noexcept {
  switch (type) {
    case nvml::ValueType::real:
      return value.as_double;
    case nvml::ValueType::uint:
      return value.as_uint;
    case nvml::ValueType::ulong:
    case nvml::ValueType::ulonglong:
      return static_cast<double>(value.as_ulong);
    case nvml::ValueType::longlong:
      return static_cast<double>(value.as_longlong);
    case nvml::ValueType::sint:
      return value.as_int;
    case nvml::ValueType::ushort:
      return value.as_ushort;
  }
  return static_cast<double>(value.as_ulong);
}

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
  measure_period(samples);
  const bool counts = moment.elapsed > Nanoseconds{0};
  bool has_new = !counts && !samples.empty();
  if (has_new) begin_with(samples, type);
  const bool begins = counted_.until == 0 || counted_.restarts;
  if (counts && !samples.empty() && begins) begin_before(samples);
  for (const nvml::BufferSample& sample : samples) has_new = (counts && count(sample, type)) || has_new;
  if (has_new) status_ = ReadStatus::ok;
  return has_new;
}

// The shortest, because the buffer has gaps while the GPU idles.
void SampleBuffer::measure_period(std::span<const nvml::BufferSample> samples) noexcept {
  std::uint64_t shortest = 0;
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const std::uint64_t before = samples[i - 1].timestamp;
    const std::uint64_t apart = samples[i].timestamp > before ? samples[i].timestamp - before : 0;
    if (apart > 0 && (shortest == 0 || apart < shortest)) shortest = apart;
  }
  if (shortest > 0) period_ = static_cast<double>(shortest) / kMicroseconds;
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
  active_seconds_.reset();
  metrics_.reset();
  caller_ = {};
}

std::optional<int> GpmSampler::add(unsigned metric) {
  if (!is_open()) return std::nullopt;
  const std::span known(metrics_->metrics, metrics_->count);
  const auto same = std::ranges::find(known, metric, &nvml::GpmMetric::id);
  if (same != known.end()) return static_cast<int>(same - known.begin());
  if (metrics_->count == nvml::GpmMetricsGet::kMost) return std::nullopt;
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
  count_activity();
}

// An instance's ratio was seen above 1 (NVIDIA/DCGM#152).
void GpmSampler::count_activity() noexcept {
  constexpr unsigned kSmActive = 2;  // NVML_GPM_METRIC_SM_UTIL
  constexpr double kPercent = 100;
  const std::span metrics(metrics_->metrics, metrics_->count);
  const auto sm = std::ranges::find(metrics, kSmActive, &nvml::GpmMetric::id);
  if (result_ == nvml::kSuccess && sm == metrics.end()) return;  // not added yet
  const bool is_known =
      result_ == nvml::kSuccess && sm->result == nvml::kSuccess && std::isfinite(sm->value) && sm->value >= 0;
  const double part = is_known ? std::min(sm->value / kPercent, 1.0) : std::nan("");
  active_seconds_ = active_seconds_.value_or(0) + part * interval_;
}

std::optional<double> GpmSampler::take_active_seconds() noexcept {
  if (is_open()) advance();
  const auto taken = std::exchange(active_seconds_, std::nullopt);
  return taken && std::isfinite(*taken) ? taken : std::nullopt;
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

namespace {

constexpr Nanoseconds kFirstLook = std::chrono::seconds(4);
constexpr Nanoseconds kRarest = std::chrono::minutes(5);

}  // namespace

void UnsettledSources::open() noexcept {
  waiting_.clear();
  next_look_ = {};
  if (std::exchange(binds_again_, false)) return;
  set_aside_.clear();
  interval_ = kFirstLook;
}

bool UnsettledSources::admit(const Key& key, Reader probe) {
  const bool is_admitted = std::ranges::find(set_aside_, key) == set_aside_.end();
  waiting_.push_back({key, std::move(probe), is_admitted});
  return is_admitted;
}

void UnsettledSources::await(const Key& key, Reader probe) {
  if (std::ranges::find(waiting_, key, &Source::key) == waiting_.end())
    waiting_.push_back({key, std::move(probe), false});
}

bool UnsettledSources::is_time(Nanoseconds now) noexcept {
  if (next_look_ == Nanoseconds{0}) next_look_ = now + interval_;
  if (now < next_look_) return false;
  interval_ = std::min(interval_ * 2, kRarest);
  next_look_ = now + interval_;
  return true;
}

bool UnsettledSources::look() {
  bool changes = false;
  std::erase_if(waiting_, [&](Source& source) { return is_settled(source, changes); });
  binds_again_ = binds_again_ || changes;
  return changes;
}

// A source that is not bound and fails in a different way stays unbound, so nothing changes.
bool UnsettledSources::is_settled(Source& source, bool& changes) {
  const ReadStatus status = source.probe().status;
  if (status == ReadStatus::gone) return false;
  if (may_pass(status)) {
    if (std::exchange(source.is_bound, false)) {
      set_aside_.push_back(source.key);
      changes = true;
    }
    return false;
  }
  const bool is_lost = is_lacking(status);
  changes = changes || source.is_bound == is_lost;
  if (!is_lost) std::erase(set_aside_, source.key);
  return true;
}

}  // namespace gpumeter::nvidia
