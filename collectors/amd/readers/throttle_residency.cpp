#include "collectors/amd/readers/throttle_residency.hpp"

#include <algorithm>

namespace gpumeter::amd {
namespace {

constexpr std::size_t kCycles = known_blob_field("accumulation_counter");
constexpr std::size_t kClock = known_blob_field("firmware_timestamp");

/// Growth of a counter of `bits` bits, including a wrap.
std::uint64_t growth(std::uint64_t last, std::uint64_t now, int bits) noexcept {
  return (now - last) & (~std::uint64_t{0} >> (64 - bits));
}

}  // namespace

Sample ThrottleResidency::advance(const GpuMetricsBlob& blob) noexcept {
  if (blob.status() != ReadStatus::ok) return Sample::miss(blob.status());
  const std::optional<Reading> now = read(blob);
  if (!now) return Sample::miss(ReadStatus::unsupported);
  total_ += throttled(blob, *now);
  last_ = now;
  return Sample::of(total_);
}

std::optional<ThrottleResidency::Reading> ThrottleResidency::read(const GpuMetricsBlob& blob) const noexcept {
  const std::optional<std::uint64_t> cycles = blob.raw(kCycles);
  const Sample clock = blob.value(kClock);
  if (!cycles || clock.status != ReadStatus::ok) return std::nullopt;
  Reading reading{*cycles, clock.value, {}};
  for (std::size_t i = 0; i < kMaxFields; ++i) {
    if (!fields_[i]) continue;
    const std::optional<std::uint64_t> residency = blob.raw(*fields_[i]);
    if (!residency) return std::nullopt;
    reading.residencies[i] = *residency;
  }
  return reading;
}

// The firmware was restarted if its clock went back, or if a residency grew more than the cycles.
double ThrottleResidency::throttled(const GpuMetricsBlob& blob, const Reading& now) const noexcept {
  if (!last_ || now.seconds <= last_->seconds) return 0;
  const std::uint64_t cycles = growth(last_->cycles, now.cycles, blob.bits(kCycles));
  std::uint64_t longest = 0;
  for (std::size_t i = 0; i < kMaxFields; ++i) {
    if (!fields_[i]) continue;
    longest = std::max(longest, growth(last_->residencies[i], now.residencies[i], blob.bits(*fields_[i])));
  }
  if (cycles == 0 || longest > cycles) return 0;
  return (now.seconds - last_->seconds) * static_cast<double>(longest) / static_cast<double>(cycles);
}

}  // namespace gpumeter::amd
