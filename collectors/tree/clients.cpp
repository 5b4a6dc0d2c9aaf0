#include "collectors/tree/clients.hpp"

#include <algorithm>
#include <utility>

namespace gpumeter::tree {
namespace {

double seconds_of(Nanoseconds time) noexcept { return std::chrono::duration<double>(time).count(); }

/// The growth of the class that grew most; nullopt if no class is known.
std::optional<double> busiest(const EngineSeconds& now, const EngineSeconds* before) noexcept {
  std::optional<double> most;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (!now[i]) continue;
    const double grown = *now[i] - (before != nullptr ? (*before)[i].value_or(0) : 0);
    most = std::max(most.value_or(0), grown);
  }
  return most;
}

}  // namespace

void Clients::open(std::shared_ptr<DrmUsers> users, const std::string& device) {
  const bool is_same = users == users_ && device == device_;
  users_ = std::move(users);
  device_ = device;
  watch_ = users_ ? users_->watch(device_, kScanEvery) : nullptr;
  if (is_same) return;  // the device returned: its counters go on
  use_.reset();
  busy_.reset();
  utilization_.reset();
  seen_.clear();
}

void Clients::begin_pass() noexcept {
  if (!users_) return;
  std::shared_ptr<const DrmUse> use = users_->use_of(device_);
  if (use && (!use_ || use->scanned_at > use_->scanned_at)) take(std::move(use));
}

void Clients::take(std::shared_ptr<const DrmUse> use) noexcept {
  const std::optional<double> grown =
      busiest(use->busy_seconds, use_ ? &std::as_const(use_->busy_seconds) : nullptr);
  if (grown) busy_ = busy_.value_or(0) + *grown;
  const double observed = use_ ? seconds_of(use->observed - use_->observed) : 0;
  utilization_.reset();
  if (grown && observed > 0) utilization_ = std::min(*grown / observed, 1.0);
  use_ = std::move(use);
}

std::optional<double> Clients::engine_seconds(EngineClass engine) const noexcept {
  return use_ ? use_->busy_seconds[static_cast<std::size_t>(engine)] : std::nullopt;
}

ReadStatus Clients::processes(std::vector<DeviceProcess>& out) {
  if (!use_) return ReadStatus::unsupported;
  std::map<int, Seen> seen;
  for (const DrmProcess& process : use_->processes) {
    DeviceProcess listed;
    listed.pid = process.pid;
    listed.memory_bytes = process.device_bytes ? process.device_bytes : process.system_bytes;
    listed.busy_seconds = busy_since(process, seen);
    out.push_back(listed);
  }
  seen_ = std::move(seen);
  listed_scan_ = use_->scanned_at;
  return ReadStatus::ok;
}

// A process that is seen for the first time has worked for an unknown time, so its count starts here.
std::optional<double> Clients::busy_since(const DrmProcess& process, std::map<int, Seen>& seen) const {
  const std::optional<double> busy = busiest(process.busy_seconds, nullptr);
  if (!busy) return std::nullopt;
  seen[process.pid] = {process.start_ticks, *busy};
  const auto last = seen_.find(process.pid);
  const bool is_known = last != seen_.end() && last->second.start_ticks == process.start_ticks;
  if (!is_known) return 0.0;
  const double at_most = seconds_of(use_->scanned_at - listed_scan_);
  return std::clamp(*busy - last->second.busy_seconds, 0.0, at_most);
}

}  // namespace gpumeter::tree
