#include "collectors/attribution/allocation/meter.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/records.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/attribution/allocation/resolver.hpp"

namespace gpumeter::allocation {
namespace {

constexpr std::string_view kIdle = "idle";

Labels labels_of(const Resolver::Found& found) {
  const DeviceIdentity& device = *found.device;
  const Labels labels(device.info, device.index, "", {.vendor = false, .model = false});
  return labels.with({{"partition", found.partition}});
}

}  // namespace

void Meter::update(std::span<const workloads::Allocation> allocations,
                   std::span<const DeviceIdentity> devices, const Readings& readings, Nanoseconds now) {
  const Resolver resolver(devices, readings.partitions);
  unresolved_.clear();
  holders_.clear();
  for (auto& [key, held] : held_) {
    held.sources.clear();
    held.since.reset();
  }
  for (const workloads::Allocation& allocation : allocations) take(allocation, resolver, now);
  for (const auto& [key, held] : held_) {
    if (!held.sources.empty()) ++holders_[key.place];
  }
  for (auto& [key, held] : held_) account(key, held, readings);
  forget(now);
}

void Meter::take(const workloads::Allocation& allocation, const Resolver& resolver, Nanoseconds now) {
  const auto found = resolver.find(allocation.device);
  if (!found) return unresolved_.push_back(allocation);
  const Key key = {{found->device->info.uuid, found->partition}, allocation.workload};
  auto known = held_.find(key);
  if (known == held_.end()) {
    if (held_.size() >= kMost) return;
    known = held_.emplace(key, Held()).first;
    if (const auto earlier = earlier_.extract(key)) known->second.idle_seconds = earlier.mapped();
  }
  Held& held = known->second;
  held.device = labels_of(*found);
  held.sources.insert(allocation.source);
  held.last_seen = now;
  if (allocation.since) held.since = std::min(*allocation.since, held.since.value_or(*allocation.since));
}

// If several workloads hold the place, its busy time does not show which of them is idle. The last mean is of
// the time until the allocation's end, however short.
void Meter::account(const Key& key, Held& held, const Readings& readings) {
  const bool has_ended = held.sources.empty();
  if (has_ended && !held.from) return;
  std::optional<BusyTime> own;
  if (has_ended ? held.is_from_own : holders_[key.place] > 1)
    own = readings.own({key.place.uuid, key.workload});
  const auto whole = readings.busy.find(key.place);
  const bool is_known = own || whole != readings.busy.end();
  if (!is_known) return held.from.reset();
  const BusyTime busy = own ? *own : whole->second;
  if (!held.idle_seconds) held.idle_seconds = 0;
  const bool is_new = !held.from || held.is_from_own != own.has_value() || busy.seconds < held.from->seconds;
  held.is_from_own = own.has_value();
  if (is_new) {
    held.from = has_ended ? std::nullopt : std::optional(busy);
    return;
  }
  const Nanoseconds elapsed = busy.at - held.from->at;
  if (!has_ended && elapsed < (own ? settings_.of_workload : settings_.of_device)) return;
  const double busy_seconds = busy.seconds - held.from->seconds;
  if (busy_seconds < settings_.idle_below * to_seconds(elapsed)) *held.idle_seconds += to_seconds(elapsed);
  held.from = has_ended ? std::nullopt : std::optional(busy);
}

void Meter::forget(Nanoseconds now) {
  const bool is_full = held_.size() >= kMost;
  std::erase_if(held_, [&](const auto& entry) {
    return entry.second.sources.empty() && (is_full || now - entry.second.last_seen >= kStays);
  });
}

void Meter::write(SeriesList& out) const {
  const auto labels_of = [](const Key& key, const Held& held) {
    return held.device.with(
        {{"kind", std::string(to_string(key.workload.kind))}, {"workload", key.workload.name}});
  };
  for (const auto& [key, held] : held_) {
    for (const workloads::AllocationSource source : held.sources) {
      out.add(catalog::allocation_info,
              labels_of(key, held).with({{"source", std::string(to_string(source))}}), 1);
    }
    if (held.since && !held.sources.empty()) {
      out.add(catalog::allocation_start, labels_of(key, held), static_cast<double>(held.since->count()));
    }
    if (held.idle_seconds) out.add(catalog::allocated_idle_seconds, labels_of(key, held), *held.idle_seconds);
  }
}

std::string Meter::save() const {
  RecordWriter out;
  const auto add = [&](const Key& key, double idle_seconds) {
    out.begin(kIdle).text(key.place.uuid).text(key.place.partition);
    out.text(to_string(key.workload.kind)).text(key.workload.name).number(idle_seconds);
  };
  for (const auto& [key, held] : held_) {
    if (held.idle_seconds) add(key, *held.idle_seconds);
  }
  for (const auto& [key, idle_seconds] : earlier_) add(key, idle_seconds);
  return out.take();
}

Result<Done> Meter::load(std::string_view lines) {
  std::map<Key, double> earlier;
  RecordReader in(lines);
  while (in.next()) {
    Key key;
    key.place.uuid = in.text();
    key.place.partition = in.text();
    const auto kind = cgroup::kKindNames.find(in.text());
    key.workload = {kind.value_or(cgroup::Kind::unattributed), in.text()};
    const double idle_seconds = in.number();
    const bool is_sane = std::isfinite(idle_seconds) && idle_seconds >= 0 && earlier.size() < kMost;
    if (in.kind() != kIdle || !kind || !is_sane) in.fail();
    earlier[std::move(key)] = idle_seconds;
  }
  if (in.failed()) return Error("the idle times of allocations, line " + std::to_string(in.line()));
  earlier_ = std::move(earlier);
  return Done{};
}

}  // namespace gpumeter::allocation
