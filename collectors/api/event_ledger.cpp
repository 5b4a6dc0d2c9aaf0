#include "collectors/api/event_ledger.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "base/text.hpp"

namespace gpumeter {
namespace {

// Hostile or broken lines may name any number of devices and codes; a machine has a few dozen.
constexpr std::size_t kMostKinds = 1024;

constexpr unsigned kNoInstance = ~0U;

bool is_same(const EventRecord& one, const EventRecord& other) {
  const auto key = [](const EventRecord& it) {
    return std::tie(it.pci_address, it.kind, it.code, it.subcode, it.link, it.instance, it.meaning);
  };
  return key(one) == key(other);
}

bool is_within(Nanoseconds one, Nanoseconds other, Nanoseconds most) {
  return one - other <= most && other - one <= most;
}

}  // namespace

bool EventLedger::note(EventRecord event) {
  const MutexLock lock(mutex_);
  const bool counts = is_new(event);
  const bool is_log = event.source == kKernelLog;
  const bool is_xid = event.kind == "xid" && event.code;
  if (is_log && is_xid && counts && xids_.size() < kMostKinds) {
    Xids& xids = xids_[{event.pci_address, *event.code, event.instance.value_or(kNoInstance)}];
    ++xids.times;
    xids.last = std::max(xids.last, event.time);
    has_xids_ = true;
  }
  if (is_log) {
    const auto same = std::ranges::find(held_, kind_of(event), kind_of);
    if (same != held_.end()) held_.erase(same);
    keep(std::move(event), counts);
  } else if (counts) {
    held_.push_back(std::move(event));
    keep_held();
  }
  return counts;
}

void EventLedger::show(EventRecord event) {
  const MutexLock lock(mutex_);
  if (event.time > last_of_log_) keep(std::move(event), false);
}

void EventLedger::count(const std::string& pci_address, std::string_view label) {
  const MutexLock lock(mutex_);
  std::pair place(pci_address, std::string(label));
  if (counts_.size() < kMostKinds || counts_.contains(place)) ++counts_[std::move(place)];
}

EventLedger::Counts EventLedger::counts() {
  const MutexLock lock(mutex_);
  return counts_;
}

// Of the two sources, the one that is ahead has reported as many events as have counted.
bool EventLedger::is_new(const EventRecord& event) {
  if (bursts_.size() >= kMostKinds) bursts_.clear();
  Burst& burst = bursts_[kind_of(event)];
  if (!is_within(event.time, burst.last, kSame)) burst = {};
  burst.last = std::max(burst.last, event.time);
  const bool is_log = event.source == kKernelLog;
  const std::uint64_t now = ++(is_log ? burst.of_log : burst.of_driver);
  return now > (is_log ? burst.of_driver : burst.of_log);
}

void EventLedger::keep(EventRecord event, bool counts) {
  const bool is_of_driver = event.source != kKernelLog && event.source != kJournal;
  if (!is_of_driver) last_of_log_ = std::max(last_of_log_, event.time);
  if (event.meaning.empty() && describe_ != nullptr) describe_(event);
  for (EventRecord& record : records_) {
    if (!is_same(record, event) || !is_within(event.time, record.time, kJoined)) continue;
    record.count += counts ? 1 : 0;
    if (record.text.empty()) record.text = first_bytes(event.text, kLongestText);
    return;
  }
  if (records_.size() >= kMost) records_.pop_front();
  event.text = first_bytes(event.text, kLongestText);
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(event.time).count();
  last_id_ = std::max(last_id_ + 1, static_cast<std::uint64_t>(std::max<std::int64_t>(microseconds, 0)));
  event.id = last_id_;
  records_.push_back(std::move(event));
}

void EventLedger::keep_held() {
  const Nanoseconds until = clock_.realtime() - kHeld;
  while (!held_.empty() && (!is_log_read_ || held_.front().time <= until || held_.size() > kMost)) {
    keep(std::move(held_.front()), true);
    held_.pop_front();
  }
}

std::vector<EventRecord> EventLedger::after(std::uint64_t id, std::size_t most) {
  const MutexLock lock(mutex_);
  keep_held();
  auto first = std::ranges::upper_bound(records_, id, {}, &EventRecord::id);
  const auto left = static_cast<std::size_t>(records_.end() - first);
  return {first, first + static_cast<std::ptrdiff_t>(std::min(most, left))};
}

bool EventLedger::has_after(std::uint64_t id) {
  const MutexLock lock(mutex_);
  keep_held();
  return !records_.empty() && records_.back().id > id;
}

}  // namespace gpumeter
