#include "collectors/sources/fdinfo/processes.hpp"

#include <algorithm>
#include <exception>

namespace gpumeter::fdinfo {
namespace {

void add(std::optional<double>& sum, std::optional<double> amount) noexcept {
  if (amount) sum = sum.value_or(0) + *amount;
}

}  // namespace

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
