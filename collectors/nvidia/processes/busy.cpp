#include "collectors/nvidia/processes/busy.hpp"

#include <algorithm>

#include "collectors/nvidia/nvml/abi.hpp"

namespace gpumeter::nvidia {
namespace {

// Libraries request room for 100 (NVIDIA/go-nvml#11). A request above the maximum is rejected.
constexpr std::size_t kLeastRoom = 128;
constexpr std::size_t kMostRoom = 4096;

// Microseconds: 72 samples at the slowest rate of one a second, and a margin.
constexpr std::uint64_t kLongestMemory = 120'000'000;

constexpr unsigned kMostPercent = 100;  // larger values are leftovers of dead processes (Syllo/nvtop#110)

std::uint64_t microseconds(Nanoseconds time) noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

/// No process was at work.
bool is_idle(unsigned result) noexcept { return result == nvml::kNotFound || result == nvml::kNoData; }

/// Repeats call(count) until the room suffices, and returns the last result.
template <class Sample_, class Call>
unsigned ask_with_room(std::vector<Sample_>& room, unsigned& count, Call call) {
  if (room.empty()) room.resize(kLeastRoom);
  for (;;) {
    count = static_cast<unsigned>(room.size());
    const unsigned result = call();
    if (result != nvml::kInsufficientSize || count <= room.size() || count > kMostRoom) return result;
    room.resize(count);
  }
}

}  // namespace

ReadStatus ProcessBusy::read(NvmlCaller& caller, Nanoseconds elapsed) {
  elapsed_ = elapsed;
  if (elapsed == Nanoseconds{0}) seen_until_ = 0;
  const unsigned result = seen_until_ == 0 ? begin(caller) : go_on(caller);
  if (result != nvml::kSuccess || elapsed == Nanoseconds{0}) shares_.clear();
  return is_idle(result) ? ReadStatus::ok : status_of(result);
}

// The driver's clock cannot be read, so its newest sample is the best estimate. The call before found no
// process at work; time since then is counted as far as samples cover it. A sample that was seen before is
// not counted again. The driver stops sampling while the GPU idles, and then returns only such samples.
unsigned ProcessBusy::begin(NvmlCaller& caller) {
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
unsigned ProcessBusy::go_on(NvmlCaller& caller) {
  const unsigned result = ask(caller, seen_until_);
  if (is_idle(result)) seen_until_ = 0;
  if (result != nvml::kSuccess) return result;
  newest_ = std::max(newest_, newest_share());
  seen_until_ = std::max(newest_, seen_until_ + microseconds(elapsed_));
  return result;
}

// From Blackwell on the former call returns nothing (Project-HAMi/HAMi-core#218), so the present one comes
// first.
unsigned ProcessBusy::ask(NvmlCaller& caller, std::uint64_t since) {
  shares_.clear();
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
  if (result == nvml::kSuccess) take_in(present_, query.count, since);
  return result;
}

unsigned ProcessBusy::ask_former(NvmlCaller& caller, std::uint64_t since) {
  if (!caller.has<&F::nvmlDeviceGetProcessUtilization>()) return nvml::kFunctionNotFound;
  unsigned count = 0;
  const unsigned result = ask_with_room(former_, count, [&] {
    return caller.call<&F::nvmlDeviceGetProcessUtilization>(former_.data(), &count, since);
  });
  if (result == nvml::kSuccess) take_in(former_, count, since);
  return result;
}

template <class Sample_>
void ProcessBusy::take_in(const std::vector<Sample_>& samples, std::size_t count, std::uint64_t since) {
  for (std::size_t i = 0; i < std::min(count, samples.size()); ++i) {
    const Sample_& sample = samples[i];
    if (sample.sm <= kMostPercent && sample.timestamp > since)
      shares_.push_back({sample.pid, sample.timestamp, static_cast<double>(sample.sm) / kMostPercent});
  }
}

std::uint64_t ProcessBusy::newest_share() const noexcept {
  std::uint64_t newest = 0;
  for (const Share& share : shares_) newest = std::max(newest, share.timestamp);
  return newest;
}

// A process that is listed twice counts only once.
double ProcessBusy::seconds_of(int pid) const noexcept {
  double ratio = 0;
  for (const Share& share : shares_) {
    if (share.pid == static_cast<unsigned>(pid)) ratio = std::max(ratio, share.ratio);
  }
  return ratio * to_seconds(elapsed_);
}

}  // namespace gpumeter::nvidia
