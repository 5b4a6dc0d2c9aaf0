#include "collectors/sources/fdinfo/watch.hpp"

#include <algorithm>
#include <exception>

namespace gpumeter::fdinfo {
namespace {

void add(std::optional<double>& sum, std::optional<double> amount) noexcept {
  if (amount) sum = sum.value_or(0) + *amount;
}

}  // namespace

DeviceWatch::DeviceWatch(std::shared_ptr<DrmUsers> users, std::string device, bool is_on)
    : users_(std::move(users)), device_(std::move(device)) {
  turn_on(is_on);
}

void DeviceWatch::turn_on(bool is_on) noexcept try {
  if (!is_on) {
    handle_.reset();
  } else if (users_ && !handle_) {
    handle_ = users_->watch(device_, kEvery);
  }
} catch (const std::exception&) {  // out of memory
  handle_.reset();
}

std::shared_ptr<const DrmUse> DeviceWatch::latest(Nanoseconds now, bool& is_late) const noexcept {
  is_late = false;
  std::shared_ptr<const DrmUse> use = users_ ? users_->use_of(device_) : nullptr;
  is_late = use && now - use->scanned_at > kStale;
  return is_late ? nullptr : use;
}

void BusyCounters::begin_pass(const DeviceWatch& watch, Nanoseconds now) noexcept {
  use_ = watch.latest(now, is_late_);
  if (use_ && (!has_last_ || use_->scanned_at != last_scan_)) advance(*use_);
}

// Before its first client, a class was not in use: it counts from 0.
void BusyCounters::advance(const DrmUse& use) noexcept {
  const double elapsed = has_last_ ? to_seconds(use.observed - last_observed_) : 0;
  std::optional<double> most;
  shares_ = {};
  for (std::size_t i = 0; i < kEngineClassCount; ++i) {
    if (!use.busy_seconds[i]) continue;
    const double added = *use.busy_seconds[i] - last_[i].value_or(0);
    most = std::max(most.value_or(0), added);
    if (elapsed > 0) shares_[i] = std::clamp(added / elapsed, 0.0, 1.0);
  }
  if (most) busiest_ = busiest_.value_or(0) + (has_last_ ? *most : 0);
  utilization_ = most && elapsed > 0 ? std::optional(std::min(*most / elapsed, 1.0)) : std::nullopt;
  last_ = use.busy_seconds;
  last_scan_ = use.scanned_at;
  last_observed_ = use.observed;
  has_last_ = true;
}

Sample BusyCounters::known(const std::optional<double>& value) const noexcept {
  if (!use_) return Sample::miss(is_late_ ? ReadStatus::timeout : ReadStatus::unsupported);
  return value ? Sample::of(*value) : Sample::miss(ReadStatus::unsupported);
}

Sample BusyCounters::engine(EngineClass engine) const noexcept {
  return known(last_[static_cast<std::size_t>(engine)]);
}

Sample BusyCounters::busiest() const noexcept { return known(busiest_); }

Sample BusyCounters::utilization() const noexcept { return known(utilization_); }

Sample BusyCounters::utilization(EngineClass engine) const noexcept {
  return known(shares_[static_cast<std::size_t>(engine)]);
}

ReadStatus ProcessLists::read(const DeviceWatch& watch, Nanoseconds now, std::optional<double> used,
                              std::vector<DeviceProcess>& out) noexcept {
  try {
    bool is_late = false;
    const std::shared_ptr<const DrmUse> use = watch.latest(now, is_late);
    if (!use) return is_late ? ReadStatus::timeout : ReadStatus::unsupported;
    list(*use, used, out);
    return ReadStatus::ok;
  } catch (const std::exception&) {  // out of memory
    out.clear();
    return ReadStatus::failed;
  }
}

// The first list is the start of counting: the busy time before it is in the lists of an earlier object.
void ProcessLists::list(const DrmUse& use, std::optional<double> used, std::vector<DeviceProcess>& out) {
  const Nanoseconds since = use.scanned_at - last_scan_.value_or(use.scanned_at);
  const std::size_t others = out.size();
  shared_.assign(others, 0);
  for (const DrmProcess& process : use.processes) merge(process, since, others, out);
  if (used) fit(*used, out);
  if (last_scan_ == use.scanned_at) return;
  last_.clear();
  for (const DrmProcess& process : use.processes) {
    last_.emplace(Key{process.pid, process.start_ticks}, process.busy_seconds);
  }
  last_scan_ = use.scanned_at;
}

void ProcessLists::merge(const DrmProcess& process, Nanoseconds since, std::size_t others,
                         std::vector<DeviceProcess>& out) {
  const Memory memory = memory_of(process);
  const std::optional<double> busy = busy_of(process, since);
  const auto end = out.begin() + static_cast<std::ptrdiff_t>(others);
  const auto known =
      std::find_if(out.begin(), end, [&](const DeviceProcess& other) { return other.pid == process.pid; });
  if (known == end) {
    out.push_back({process.pid, memory.bytes, busy});
    shared_.push_back(memory.shared);
    return;
  }
  known->memory_bytes = std::max(known->memory_bytes, memory.bytes);  // nullopt is less than any number
  known->busy_seconds = std::max(known->busy_seconds, busy);
  shared_[static_cast<std::size_t>(known - out.begin())] = memory.shared;
}

std::optional<double> ProcessLists::busy_of(const DrmProcess& process, Nanoseconds since) const {
  const auto known = last_.find({process.pid, process.start_ticks});
  std::optional<double> busiest;
  for (std::size_t i = 0; i < kEngineClassCount; ++i) {
    const std::optional<double>& total = process.busy_seconds[i];
    if (!total) continue;
    const double before = known == last_.end() ? 0 : known->second[i].value_or(0);
    busiest = std::max(busiest.value_or(0), *total - before);
  }
  if (busiest) busiest = std::min(*busiest, to_seconds(since));
  return busiest;
}

ProcessLists::Memory ProcessLists::memory_of(const DrmProcess& process) const {
  Memory memory{process.device_bytes, process.shared_device_bytes};
  if (memory_ == MemoryKind::all || !memory.bytes) {
    add(memory.bytes, process.system_bytes);
    memory.shared += process.shared_system_bytes;
  }
  memory.shared = std::min(memory.shared, memory.bytes.value_or(0));
  return memory;
}

void ProcessLists::fit(double used, std::vector<DeviceProcess>& out) const {
  double sum = 0;
  double shared = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    sum += out[i].memory_bytes.value_or(0);
    shared += shared_[i];
  }
  if (sum <= used) return;
  const double of_shared = shared > 0 ? std::min((sum - used) / shared, 1.0) : 0;
  const double rest = sum - shared * of_shared;
  const double scale = rest > used ? std::max(used, 0.0) / rest : 1;
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::optional<double>& bytes = out[i].memory_bytes;
    if (bytes) bytes = (*bytes - shared_[i] * of_shared) * scale;
  }
}

}  // namespace gpumeter::fdinfo
