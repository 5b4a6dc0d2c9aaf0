#include "collectors/nvidia/links.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace gpumeter::nvidia {
namespace {

// A worse symptom outweighs any count of a lesser one.
constexpr double kIsDown = 1e15;
constexpr double kFailedRecovery = 1e9;
constexpr double kIsSlow = 1e8;
constexpr double kHasBitErrors = 1e7;
constexpr double kRecovery = 1e3;
constexpr double kError = 1;

/// A field of each link that counts a symptom. A healthy link never recovers; a replay or a packet with an
/// error now and then is news only when it happens. Checksum errors are repeated transmissions, and forward
/// error correction is usual.
struct Counter {
  unsigned field;  // NVML_FI_DEV_NVLINK_*
  double weight;
};
constexpr Counter kCounters[] = {
    {161, kError},     // ERROR_DL_REPLAY, before NVLink 5
    {162, kRecovery},  // ERROR_DL_RECOVERY, before NVLink 5
    {206, 1},         {207, 1},
    {208, 1},         {209, 1},
    {210, 1},                                   // COUNT_MALFORMED_PACKET_ERRORS to _GENERAL_ERRORS
    {211, 1},         {212, 1},                 // COUNT_LOCAL_LINK_INTEGRITY_ERRORS, XMIT_DISCARDS
    {213, kRecovery}, {214, kFailedRecovery}};  // COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS, ..._FAILED_EVENTS
// The fields of each link before those of kCounters.
enum Place : std::size_t { kSpeed, kState, kEffective, kSymbol, kFirstCounter };
constexpr unsigned kFirstFields[kFirstCounter] = {164, 165, 220, 222};
constexpr std::size_t kFields = kFirstCounter + std::size(kCounters);

// GoogleCloudPlatform/cluster-toolkit, pull request 5942; the conditions of exporter/health have the same.
constexpr double kMostEffective = 1e-9;
constexpr double kMostSymbol = 1e-25;

bool counts_as_up(double state) noexcept { return state == nvml::kLinkActive || state == nvml::kLinkSleeps; }

std::optional<double> known(const nvml::FieldValue& field) noexcept {
  const Sample sample = sample_of(field);
  return sample.status == ReadStatus::ok ? std::optional(sample.value) : std::nullopt;
}

/// Of a driver that has no fields for it.
double counted(NvmlCaller& gpu, unsigned link, unsigned counter) noexcept {
  std::uint64_t count = 0;
  const unsigned result = gpu.call<&F::nvmlDeviceGetNvLinkErrorCounter>(link, counter, &count);
  return result == nvml::kSuccess ? static_cast<double>(count) : 0;
}

}  // namespace

double bit_error_ratio(double field) noexcept {
  const auto bits = static_cast<std::uint64_t>(field);
  constexpr std::uint64_t kExponent = 255;  // NVML_NVLINK_BER_EXP_WIDTH
  constexpr std::uint64_t kMantissa = 15;   // NVML_NVLINK_BER_MANTISSA_WIDTH
  constexpr unsigned kMantissaShift = 8;    // NVML_NVLINK_BER_MANTISSA_SHIFT
  return static_cast<double>(bits >> kMantissaShift & kMantissa) *
         std::pow(10.0, -static_cast<double>(bits & kExponent));
}

void NvLinks::open(NvmlCaller gpu) noexcept {
  read(gpu);
  shown_ = worst_;
}

Sample NvLinks::up(NvmlCaller& gpu) noexcept {
  read(gpu);
  Sample sum = links_[0].up;
  for (std::size_t i = 1; sum.status == ReadStatus::ok && i < count_; ++i) {
    const Sample& one = links_[i].up;
    sum = one.status == ReadStatus::ok ? Sample::of(sum.value + one.value) : one;
  }
  return sum;
}

// links_[count_] has the reason why there are no more.
Sample NvLinks::is_up(NvmlCaller& gpu, std::uint64_t link) noexcept {
  read(gpu);
  return link < links_.size() ? links_[std::min<std::size_t>(link, count_)].up
                              : Sample::miss(ReadStatus::unsupported);
}

Sample NvLinks::speed(NvmlCaller& gpu) noexcept {
  read(gpu);
  return common_speed_ > 0 ? Sample::of(common_speed_) : Sample::miss(ReadStatus::unsupported);
}

// Link 0 lacks a state if there is no NVLink, and so does a link beyond the last.
void NvLinks::read(NvmlCaller& gpu) noexcept {
  if (std::exchange(is_fresh_, true)) return;
  for (count_ = 0; count_ < links_.size(); ++count_) {
    const double before = std::exchange(links_[count_], read_link(gpu, static_cast<unsigned>(count_))).score;
    const ReadStatus status = links_[count_].up.status;
    if (is_lacking(status) || gpu.is_lost()) break;
    if (status != ReadStatus::ok) links_[count_].score = before;
  }
  if (gpu.is_lost()) return;
  find_common_speed();
  for (std::size_t i = 0; i < count_; ++i) {
    Link& link = links_[i];
    if (link.up.status != ReadStatus::ok) continue;
    if (link.up.value == 0 && was_up_[i]) link.score += kIsDown;
    if (link.up.value != 0) was_up_.set(i);
    if (link.up.value != 0 && link.speed > 0 && link.speed < common_speed_) link.score += kIsSlow;
  }
  select();
}

NvLinks::Link NvLinks::read_link(NvmlCaller& gpu, unsigned link) noexcept {
  std::array<nvml::FieldValue, kFields> values{};
  for (std::size_t i = 0; i < kFields; ++i) {
    values[i].field = i < kFirstCounter ? kFirstFields[i] : kCounters[i - kFirstCounter].field;
    values[i].scope = link;
  }
  const unsigned result = gpu.call<&F::nvmlDeviceGetFieldValues>(static_cast<int>(kFields), values.data());
  if (result != nvml::kSuccess) {
    for (nvml::FieldValue& value : values) value.result = result;
  }
  Link read;
  const std::optional<double> state = known(values[kState]);
  if (state) read.up = Sample::of(counts_as_up(*state) ? 1 : 0);
  if (!state) {
    unsigned plain = 0;
    const ReadStatus status = status_of(gpu.call<&F::nvmlDeviceGetNvLinkState>(link, &plain));
    read.up = status == ReadStatus::ok ? Sample::of(plain != 0 ? 1 : 0) : Sample::miss(status);
    if (status != ReadStatus::ok) return read;
  }
  if (state == nvml::kLinkHasNoTraffic) read.score += kIsDown;
  read.speed = known(values[kSpeed]).value_or(0);
  const bool has_bit_errors = bit_error_ratio(known(values[kEffective]).value_or(0)) > kMostEffective ||
                              bit_error_ratio(known(values[kSymbol]).value_or(0)) > kMostSymbol;
  if (has_bit_errors) read.score += kHasBitErrors;
  bool has_fields = false;
  double errors = 0;
  for (std::size_t i = 0; i < std::size(kCounters); ++i) {
    const std::optional<double> count = known(values[kFirstCounter + i]);
    has_fields = has_fields || (count && kCounters[i].weight == kRecovery);
    const bool is_always_news = kCounters[i].weight > kError;
    (is_always_news ? read.score : errors) += count.value_or(0) * kCounters[i].weight;
  }
  if (!has_fields) {
    constexpr unsigned kReplays = 0, kRecoveries = 1;  // nvmlNvLinkErrorCounter_t
    errors += counted(gpu, link, kReplays);
    read.score += counted(gpu, link, kRecoveries) * kRecovery;
  }
  std::optional<double>& before = known_errors_[link];
  if (!before || errors < *before) before = errors;
  read.score += errors - *before;
  return read;
}

void NvLinks::find_common_speed() noexcept {
  common_speed_ = 0;
  std::ptrdiff_t most = 0;
  const auto end = links_.begin() + static_cast<std::ptrdiff_t>(count_);
  for (auto link = links_.begin(); link != end; ++link) {
    if (link->up.status != ReadStatus::ok || link->up.value == 0 || link->speed <= 0) continue;
    const std::ptrdiff_t equal = std::count_if(links_.begin(), end, [&](const Link& other) {
      return other.up.value != 0 && other.speed == link->speed;
    });
    // Of two speeds that are equally common the higher one is meant.
    if (equal < most || (equal == most && link->speed <= common_speed_)) continue;
    most = equal;
    common_speed_ = link->speed;
  }
}

/// The link with the highest score that is not in the set; count_ if none has anything to say.
std::size_t NvLinks::worst_beside(const Set& set) const noexcept {
  std::size_t worst = count_;
  for (std::size_t i = 0; i < count_; ++i) {
    if (set[i] || links_[i].score <= 0) continue;
    if (worst == count_ || links_[i].score > links_[worst].score) worst = i;
  }
  return worst;
}

// Series that come and go cost more than a list that is not quite in order: another link takes the place of
// the least bad one only if it is twice as bad.
void NvLinks::select() noexcept {
  for (std::size_t i = 0; i < worst_.size(); ++i) {
    if (worst_[i] && (i >= count_ || links_[i].score <= 0)) worst_.reset(i);
  }
  while (true) {
    const std::size_t next = worst_beside(worst_);
    if (next == count_) return;
    if (worst_.count() >= kMostShown) {
      std::size_t least = 0;
      while (!worst_[least]) ++least;
      for (std::size_t i = least; i < count_; ++i) {
        if (worst_[i] && links_[i].score < links_[least].score) least = i;
      }
      if (links_[next].score <= 2 * links_[least].score) return;
      worst_.reset(least);
    }
    worst_.set(next);
  }
}

}  // namespace gpumeter::nvidia
