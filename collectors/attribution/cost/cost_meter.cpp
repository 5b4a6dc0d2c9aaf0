#include "collectors/attribution/cost/cost_meter.hpp"

#include <algorithm>
#include <utility>

namespace gpumeter::workloads {
namespace {

void add_to(std::optional<double>& sum, double amount) { sum = sum.value_or(0) + amount; }

}  // namespace

void CostMeter::resume(const DeviceAccount& account) {
  for (const AccountEntry& entry : account.entries) {
    tallies_[entry.id] = {entry.cost, entry.busy_counter.value_or(0), entry.is_present, entry.begun};
  }
}

void CostMeter::pass(const DeviceMeter& meter, const DeviceReadings& readings) {
  for (const auto& [cause, total] : readings.throttled) {
    const auto [last, is_first] = last_throttled_.try_emplace(cause, total);
    const double grown = std::max(total - std::exchange(last->second, total), 0.0);
    for (auto& [id, tally] : tallies_) {
      const auto workload = meter.workloads().find(id);
      if (workload == meter.workloads().end() || workload->second.processes == 0) continue;
      tally.cost.throttled_seconds[cause] += grown;
    }
  }
}

void CostMeter::look(Nanoseconds now, const DeviceMeter& meter, const DeviceReadings& readings) {
  const double elapsed = looked_at_ ? to_seconds(now - *looked_at_) : 0;
  looked_at_ = now;
  const std::optional<double> whole = device_busy(readings);
  const auto& workloads = meter.workloads();
  std::erase_if(tallies_, [&](const auto& entry) { return !workloads.contains(entry.first); });
  const auto held =
      std::ranges::count_if(workloads, [](const auto& entry) { return entry.second.processes > 0; });
  for (const auto& [id, workload] : workloads) {
    const auto [found, is_new] = tallies_.try_emplace(id);
    Tally& tally = found->second;
    if (is_new) tally.begun = now;
    const bool is_alone = held == 1 && workload.processes > 0;
    add(tally, workload, elapsed, is_alone ? whole : std::nullopt);
  }
}

// A workload held the device since the last look if it was there already. A new one held it for at least as
// long as it was busy. One that left since the last look counts as idle as before, because its last busy time
// is not known. The device's own busy time counts for a workload that uses the device alone if the driver
// does not report that of processes.
void CostMeter::add(Tally& tally, const Workload& workload, double elapsed,
                    std::optional<double> device_busy) {
  std::optional<double> busy = device_busy;
  if (workload.busy_seconds) {
    busy = std::max(*workload.busy_seconds - std::exchange(tally.busy_counter, *workload.busy_seconds), 0.0);
  }
  const bool was_present = std::exchange(tally.was_present, workload.processes > 0);
  const double held = was_present ? elapsed : std::min(elapsed, busy.value_or(0));
  const double held_before = std::exchange(tally.cost.held_seconds, tally.cost.held_seconds + held);
  const bool has_left = was_present && workload.processes == 0 && busy.value_or(0) == 0;
  if (has_left) {
    if (held_before > 0 && tally.cost.idle_seconds) *tally.cost.idle_seconds *= 1 + held / held_before;
    return;
  }
  if (busy && (was_present || workload.processes > 0)) {
    add_to(tally.cost.busy_seconds, *busy);
    add_to(tally.cost.idle_seconds, std::max(held - *busy, 0.0));
  }
}

std::optional<double> CostMeter::device_busy(const DeviceReadings& readings) {
  const std::optional<double> last = std::exchange(last_device_busy_, readings.busy_seconds);
  if (!last || !readings.busy_seconds) return std::nullopt;
  return std::max(*readings.busy_seconds - *last, 0.0);
}

void CostMeter::interrupt() noexcept {
  looked_at_.reset();
  last_device_busy_.reset();
  last_throttled_.clear();
  for (auto& [id, tally] : tallies_) tally.was_present = false;
}

std::shared_ptr<const DeviceAccount> CostMeter::account(const std::string& uuid, unsigned index,
                                                        const DeviceMeter& meter,
                                                        const DeviceReadings& readings) const {
  auto account = std::make_shared<DeviceAccount>();
  account->uuid = uuid;
  account->index = index;
  account->energy_total = readings.energy_total;
  account->entries.reserve(meter.workloads().size());
  for (const auto& [id, workload] : meter.workloads()) {
    const auto tally = tallies_.find(id);
    if (tally == tallies_.end()) continue;
    AccountEntry& entry = account->entries.emplace_back();
    entry = {id,
             tally->second.cost,
             workload.energy_joules,
             workload.busy_seconds,
             workload.part,
             workload.processes > 0,
             tally->second.begun,
             workload.last_seen};
    entry.cost.uuid = uuid;
    entry.cost.index = index;
    entry.cost.peak_memory = workload.peak_memory;
    if (readings.energy_total) entry.cost.joules = workload.energy_joules;
  }
  return account;
}

}  // namespace gpumeter::workloads
