#include "daemon/drm/scans.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace gpumeter {
namespace {

// The pause within the first round over all processes.
constexpr Nanoseconds kFirstRound = std::chrono::seconds(1);
// A scan of many thousands of processes takes seconds; a read of fdinfo that hangs does not hold it up.
constexpr Nanoseconds kDeadline = std::chrono::seconds(30);
constexpr Nanoseconds kShortest = std::chrono::seconds(1);

}  // namespace

DrmScans::DrmScans(fdinfo::Scanner::Sources sources, const Clock& clock)
    : clock_(clock), scanner_(std::move(sources)) {}

void DrmScans::start(Scheduler& scheduler) {
  job_.add_to(scheduler, {"drm-users", kDeadline, [self = shared_from_this()] { return self->turn(); }});
}

std::shared_ptr<void> DrmScans::watch(std::string_view device, Nanoseconds every) {
  std::string name(device);
  {
    MutexLock lock(mutex_);
    watches_[name].insert(std::max(every, kShortest));
  }
  job_.wake();
  return {this, [weak = weak_from_this(), name = std::move(name), every](void*) {
            if (const auto self = weak.lock()) self->end_watch(name, std::max(every, kShortest));
          }};
}

void DrmScans::end_watch(const std::string& device, Nanoseconds every) {
  MutexLock lock(mutex_);
  const auto found = watches_.find(device);
  if (found == watches_.end()) return;
  if (const auto one = found->second.find(every); one != found->second.end()) found->second.erase(one);
  if (!found->second.empty()) return;
  watches_.erase(found);
  uses_.erase(device);
}

std::shared_ptr<const DrmUse> DrmScans::use_of(std::string_view device) const {
  MutexLock lock(mutex_);
  const auto use = uses_.find(device);
  return use == uses_.end() ? nullptr : use->second;
}

void DrmScans::scan_soon() {
  constexpr int kShare = 100;
  {
    MutexLock lock(mutex_);
    const Nanoseconds now = clock_.monotonic();
    if (watches_.empty() || !figures_ || now < next_extra_) return;
    const std::chrono::duration<double> rest(kShare * figures_->scan_seconds);
    next_extra_ = now + std::chrono::duration_cast<Nanoseconds>(rest);
  }
  job_.wake();
}

std::optional<DrmScans::Figures> DrmScans::figures() const {
  MutexLock lock(mutex_);
  return watches_.empty() ? std::nullopt : figures_;
}

Nanoseconds DrmScans::turn() {
  const Wanted wanted = this->wanted();
  if (wanted.devices.empty()) {
    scanner_.forget();
    clear();
    return Scheduler::kForever;
  }
  fdinfo::Scanner::Result result = scanner_.scan(wanted.devices, wanted.every);
  const Nanoseconds pause = result.is_whole ? wanted.every : kFirstRound;
  const Nanoseconds took = result.duration;
  publish(std::move(result));
  return std::max(pause - took, Nanoseconds{0});
}

DrmScans::Wanted DrmScans::wanted() const {
  Wanted wanted;
  MutexLock lock(mutex_);
  for (const auto& [device, intervals] : watches_) {
    wanted.devices.push_back(device);
    const bool is_first = wanted.devices.size() == 1;
    wanted.every = is_first ? *intervals.begin() : std::min(wanted.every, *intervals.begin());
  }
  return wanted;
}

void DrmScans::clear() {
  MutexLock lock(mutex_);
  figures_.reset();
  uses_.clear();
}

// A device may have lost its last watch during the scan.
void DrmScans::publish(fdinfo::Scanner::Result result) {
  MutexLock lock(mutex_);
  malformed_ += result.malformed;
  figures_ = {to_seconds(result.duration), result.inaccessible, malformed_};
  uses_.clear();
  for (const auto& [device, watches] : watches_) {
    if (const auto use = result.uses.find(device); use != result.uses.end()) uses_.insert(*use);
  }
}

std::shared_ptr<void> SingleScans::watch(std::string_view device, Nanoseconds) {
  devices_.emplace(device);
  return {this, [](void*) {}};
}

std::shared_ptr<const DrmUse> SingleScans::use_of(std::string_view device) const {
  const auto use = uses_.find(device);
  return use == uses_.end() ? nullptr : use->second;
}

// A scan ends with its budget, and the next one continues. A tree without processes never has a whole round.
void SingleScans::scan() {
  constexpr int kMostRounds = kAtMost / fdinfo::Scanner::kBudget;
  if (devices_.empty()) return;
  const std::vector<std::string> devices(devices_.begin(), devices_.end());
  for (int round = 0; round < kMostRounds; ++round) {
    fdinfo::Scanner::Result result = scanner_.scan(devices, kAtMost);
    uses_ = std::move(result.uses);
    if (result.is_whole) return;
  }
}

}  // namespace gpumeter
