#include "collectors/nvidia/processes/busy.hpp"

#include <algorithm>

#include "collectors/nvidia/nvml/abi.hpp"
#include "collectors/nvidia/processes/room.hpp"

namespace gpumeter::nvidia {
namespace {

// Microseconds: 72 samples at the slowest rate of one a second, and a margin.
constexpr std::uint64_t kLongestMemory = 120'000'000;

constexpr unsigned kMostPercent = 100;  // larger values are leftovers of dead processes (Syllo/nvtop#110)

std::uint64_t microseconds(Nanoseconds time) noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

/// No process was at work.
bool is_idle(unsigned result) noexcept { return result == nvml::kNotFound || result == nvml::kNoData; }

}  // namespace

ReadStatus Busy::read(NvmlCaller& caller, Nanoseconds elapsed) {
  elapsed_ = elapsed;
  if (elapsed == Nanoseconds{0}) seen_until_ = 0;
  const unsigned result = seen_until_ == 0 ? begin(caller) : go_on(caller);
  if (result != nvml::kSuccess || elapsed == Nanoseconds{0}) shares_.clear();
  return is_idle(result) ? ReadStatus::ok : status_of(result);
}

// The driver's clock cannot be read, so its newest sample is the best estimate. The call before found no
// process at work; time since then is counted as far as samples cover it. A sample that was seen before is
// not counted again. The driver stops sampling while the GPU idles, and then returns only such samples.
unsigned Busy::begin(NvmlCaller& caller) {
  const unsigned result = ask(caller, 0);
  if (result != nvml::kSuccess || shares_.empty()) return result;
  const std::uint64_t newest = newest_share();
  if (elapsed_ == Nanoseconds{0}) return seen_until_ = newest_ = newest, result;
  if (newest + kLongestMemory < newest_) newest_ = 0;  // the clock was set back
  seen_until_ = std::max(newest - std::min(newest, microseconds(elapsed_)), newest_);
  return go_on(caller);
}

// The next call starts at the present time, not at the newest timestamp. Otherwise a time without work would
// be averaged in twice. After an idle time counting begins again, since the driver's clock may have been set
// back.
unsigned Busy::go_on(NvmlCaller& caller) {
  const unsigned result = ask(caller, seen_until_);
  if (is_idle(result)) seen_until_ = 0;
  if (result != nvml::kSuccess) return result;
  newest_ = std::max(newest_, newest_share());
  seen_until_ = std::max(newest_, seen_until_ + microseconds(elapsed_));
  return result;
}

unsigned Busy::ask(NvmlCaller& caller, std::uint64_t since) {
  shares_.clear();
  return read_samples(caller, since);
}

void Busy::take_in(const Share& share, std::uint64_t since) {
  if (share.percent <= kMostPercent && share.timestamp > since) shares_.push_back(share);
}

// From Blackwell on the former call returns nothing (Project-HAMi/HAMi-core#218), so the present one comes
// first.
unsigned ProcessBusy::read_samples(NvmlCaller& caller, std::uint64_t since) {
  const unsigned result = ask_present(caller, since);
  return status_of(result) == ReadStatus::unsupported ? ask_former(caller, since) : result;
}

unsigned ProcessBusy::ask_present(NvmlCaller& caller, std::uint64_t since) {
  if (!caller.has<&F::nvmlDeviceGetProcessesUtilizationInfo>()) return nvml::kFunctionNotFound;
  nvml::ProcessesUtilization query{};
  const unsigned result = ask_with_room(present_, query.count, [&] {
    query.last_seen = since;
    query.samples = present_.data();
    return caller.call<&F::nvmlDeviceGetProcessesUtilizationInfo>(&query);
  });
  for (std::size_t i = 0; result == nvml::kSuccess && i < std::min<std::size_t>(query.count, present_.size());
       ++i)
    take_in({present_[i].pid, present_[i].timestamp, present_[i].sm}, since);
  return result;
}

unsigned ProcessBusy::ask_former(NvmlCaller& caller, std::uint64_t since) {
  if (!caller.has<&F::nvmlDeviceGetProcessUtilization>()) return nvml::kFunctionNotFound;
  unsigned count = 0;
  const unsigned result = ask_with_room(former_, count, [&] {
    return caller.call<&F::nvmlDeviceGetProcessUtilization>(former_.data(), &count, since);
  });
  for (std::size_t i = 0; result == nvml::kSuccess && i < std::min<std::size_t>(count, former_.size()); ++i)
    take_in({former_[i].pid, former_[i].timestamp, former_[i].sm}, since);
  return result;
}

std::uint64_t Busy::newest_share() const noexcept {
  std::uint64_t newest = 0;
  for (const Share& share : shares_) newest = std::max(newest, share.timestamp);
  return newest;
}

// A user that is listed twice counts only once.
double Busy::seconds_of(unsigned user) const noexcept {
  unsigned percent = 0;
  for (const Share& share : shares_) {
    if (share.user == user) percent = std::max(percent, share.percent);
  }
  return static_cast<double>(percent) / kMostPercent * to_seconds(elapsed_);
}

}  // namespace gpumeter::nvidia
