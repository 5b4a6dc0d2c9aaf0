#include "collectors/attribution/allocation/meter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/records.hpp"
#include "base/text.hpp"
#include "collectors/api/catalog.hpp"

namespace gpumeter::allocation {
namespace {

struct Copy {
  const MetricDescriptor* family;
  Labels labels;
  BusyTime value;
};

constexpr std::array<const MetricDescriptor*, 5> kRead = {
    &catalog::busy_seconds, &catalog::partition_busy_seconds, &catalog::partition_info,
    &catalog::workload_busy_seconds, &catalog::workload_share};

std::vector<Copy> copied(const Store& store) {
  std::vector<Copy> copies;
  store.walk([&](const Family& family) {
    if (std::ranges::find(kRead, &family.descriptor()) == kRead.end()) return;
    family.for_each([&](const Series& it) {
      copies.push_back({&family.descriptor(), it.labels(), {it.value(), it.committed_at()}});
    });
  });
  return copies;
}

class Row {
 public:
  explicit Row(const Labels& labels) : pairs_(labels.pairs()) {}

  std::string operator[](std::string_view label) const {
    const auto found = std::ranges::find(pairs_, label, &Labels::Pair::first);
    return found == pairs_.end() ? std::string() : std::string(found->second);
  }
  Readings::OnDevice on_device() const {
    const auto kind = cgroup::kKindNames.find((*this)["kind"]).value_or(cgroup::Kind::other);
    return {(*this)["uuid"], {kind, (*this)["workload"]}};
  }

 private:
  std::vector<Labels::Pair> pairs_;
};

void take(const Copy& copy, Readings& readings) {
  const Row row(copy.labels);
  if (copy.family == &catalog::workload_share) {
    readings.present.insert(row.on_device());
    readings.listed[row["uuid"]] = copy.value.at;
  } else if (copy.family == &catalog::workload_busy_seconds) {
    readings.of_workloads[row.on_device()] = copy.value;
  } else if (copy.family == &catalog::partition_info) {
    const Place place = {row["uuid"], row["partition"]};
    readings.partitions.push_back(
        {place, row["mig_uuid"], row["gpu_instance"], row["profile"], row["profile_id"], row["placement"]});
  } else {
    readings.busy[{row["uuid"], row["partition"]}] = copy.value;
  }
}

}  // namespace

Readings read(const Store& store) {
  Readings readings;
  for (const Copy& copy : copied(store)) take(copy, readings);
  return readings;
}

std::optional<BusyTime> Readings::own(const OnDevice& key) const {
  if (const auto known = of_workloads.find(key); known != of_workloads.end()) return known->second;
  const auto list = listed.find(key.first);
  if (list == listed.end() || present.contains(key)) return std::nullopt;
  return BusyTime{0, list->second};
}

namespace {

bool is_of(const DeviceIdentity& device, const std::string& vendor) {
  return vendor.empty() || device.info.vendor == vendor;
}

// A device without a PCI address follows those with one.
auto order_of(const DeviceIdentity* device) {
  const std::string& address = device->info.pci_address;
  return std::tuple(address.empty(), std::string_view(address), device->index);
}

/// Removes and returns the part behind the last separator.
std::string_view take_last(std::string_view& text, char separator) noexcept {
  const std::size_t at = text.rfind(separator);
  if (at == std::string_view::npos) return std::exchange(text, {});
  const std::string_view last = text.substr(at + 1);
  text = text.substr(0, at);
  return last;
}

/// A profile as NVIDIA's DRA driver writes it in a device's name: "1g.10gb+me" is "1g10gb-me".
std::string dra_profile(std::string_view profile) {
  std::string name;
  for (const char c : profile) {
    if (c == '.') continue;
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    const bool is_upper = c >= 'A' && c <= 'Z';
    name += is_plain ? c : is_upper ? static_cast<char>(c - 'A' + 'a') : '-';
  }
  return name;
}

/// "1c2g20gb", a part of an instance, is "2g20gb".
std::string_view without_compute_slices(std::string_view profile) noexcept {
  const std::size_t digits = std::min(profile.find_first_not_of("0123456789"), profile.size());
  const bool has_slices = digits > 0 && profile.substr(digits).starts_with('c');
  return has_slices ? profile.substr(digits + 1) : profile;
}

/// Finds the device, or its partition, that a source of allocations names. `devices`: all known devices of
/// the machine, by index, also those that are missing, because positions count them.
class Resolver {
 public:
  Resolver(std::span<const DeviceIdentity> devices, std::span<const PartitionFacts> partitions)
      : devices_(devices), partitions_(partitions) {
    for (const DeviceIdentity& device : devices_) in_pci_order_.push_back(&device);
    std::ranges::sort(in_pci_order_, {}, order_of);
  }

  struct Found {
    const DeviceIdentity* device;  ///< one of `devices`
    std::string partition;         ///< label; empty: the whole device
  };

  /// nullopt: the machine has no such device, or more than one.
  std::optional<Found> find(const workloads::DeviceSelector& selector) const {
    using By = workloads::DeviceSelector::By;
    const auto has_address = [&](const DeviceInfo& info) { return info.pci_address == selector.id; };
    if (selector.id.empty()) return std::nullopt;
    switch (selector.by) {
      case By::uuid:
        return by_uuid(selector.id);
      case By::pci_address:
        return only(selector.vendor, has_address);
      case By::minor:
        return by_minor(selector);
      case By::position:
        return in_order(selector);
    }
    return std::nullopt;
  }

 private:
  using Selector = workloads::DeviceSelector;

  template <class Matches>
  std::optional<Found> only(const std::string& vendor, Matches matches) const {
    std::optional<Found> found;
    for (const DeviceIdentity& device : devices_) {
      if (!is_of(device, vendor) || !matches(device.info)) continue;
      if (found) return std::nullopt;
      found = Found{&device, ""};
    }
    return found;
  }

  std::optional<Found> by_uuid(const std::string& uuid) const {
    const auto part = std::ranges::find(partitions_, uuid, &PartitionFacts::mig_uuid);
    if (part == partitions_.end()) {
      const auto whole = only("", [&](const DeviceInfo& info) { return info.uuid == uuid; });
      return whole ? whole : by_old_mig_name(uuid);
    }
    const auto device = only("", [&](const DeviceInfo& info) { return info.uuid == part->place.uuid; });
    if (!device) return std::nullopt;
    return Found{device->device, part->place.partition};
  }

  // MIG-GPU-<uuid of the GPU>/<GPU instance>/<compute instance>: NVIDIA's drivers before 470.
  std::optional<Found> by_old_mig_name(const std::string& name) const {
    std::string_view rest = name;
    if (!rest.starts_with("MIG-GPU-")) return std::nullopt;
    rest.remove_prefix(std::string_view("MIG-").size());
    const std::string_view uuid = take_until(rest, '/');
    const std::string_view instance = take_until(rest, '/');
    const auto device = only("", [&](const DeviceInfo& info) { return info.uuid == uuid; });
    std::string partition = instance_with_id(uuid, instance);
    if (!device || partition.empty()) return std::nullopt;
    return Found{device->device, std::move(partition)};
  }

  std::string instance_with_id(std::string_view uuid, std::string_view id) const {
    const auto known = std::ranges::find_if(partitions_, [&](const PartitionFacts& facts) {
      return facts.place.uuid == uuid && facts.gpu_instance == id;
    });
    return known == partitions_.end() ? "" : known->place.partition;
  }

  // `name`: PROFILE-ID-START. NVML gives the id of an instance's profile and its place to privileged callers
  // only. Otherwise the instance is known if it is the only one of its profile.
  std::string instance_at_place(const std::string& uuid, std::string_view name) const {
    const std::string_view start = take_last(name, '-');
    const std::string_view id = take_last(name, '-');
    std::set<std::string> by_profile;
    bool are_places_known = false;
    for (const PartitionFacts& facts : partitions_) {
      if (facts.place.uuid != uuid) continue;
      are_places_known = are_places_known || !facts.placement.empty();
      if (!facts.placement.empty() && facts.placement == start && facts.profile_id == id) {
        return facts.place.partition;
      }
      if (dra_profile(facts.profile) == without_compute_slices(name))
        by_profile.insert(facts.place.partition);
    }
    return by_profile.size() == 1 && !are_places_known ? *by_profile.begin() : "";
  }

  // An instance that the driver does not list (yet) is its GPU.
  std::optional<Found> by_minor(const Selector& selector) const {
    std::string_view part = selector.id;
    const std::string_view minor = take_until(part, '/');
    auto found = only(selector.vendor, [&](const DeviceInfo& info) { return info.minor == minor; });
    if (!found) return found;
    const std::string& uuid = found->device->info.uuid;
    constexpr std::string_view kId = "gi";
    constexpr std::string_view kPlace = "mig-";
    if (part.starts_with(kId)) found->partition = instance_with_id(uuid, part.substr(kId.size()));
    if (part.starts_with(kPlace)) found->partition = instance_at_place(uuid, part.substr(kPlace.size()));
    return found;
  }

  std::optional<Found> in_order(const Selector& selector) const {
    std::optional<std::size_t> left = parse_number<std::size_t>(selector.id);
    if (!left) return std::nullopt;
    for (const DeviceIdentity* const device : in_pci_order_) {
      if (!is_of(*device, selector.vendor)) continue;
      if ((*left)-- == 0) return Found{device, ""};
    }
    return std::nullopt;
  }

  std::span<const DeviceIdentity> devices_;
  std::span<const PartitionFacts> partitions_;
  std::vector<const DeviceIdentity*> in_pci_order_;
};

constexpr std::string_view kIdle = "idle";

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
  for (const workloads::Allocation& allocation : allocations) {
    const auto found = resolver.find(allocation.device);
    if (!found) {
      unresolved_.push_back(allocation);
      continue;
    }
    const DeviceInfo& info = found->device->info;
    const Labels labels(info, found->device->index, "", {.vendor = false, .model = false});
    take(allocation, {info.uuid, found->partition}, labels.with({{"partition", found->partition}}), now);
  }
  for (const auto& [key, held] : held_) {
    if (!held.sources.empty()) ++holders_[key.place];
  }
  for (auto& [key, held] : held_) account(key, held, readings);
  forget(now);
}

void Meter::take(const workloads::Allocation& allocation, const Place& place, Labels device,
                 Nanoseconds now) {
  const Key key = {place, allocation.workload};
  auto known = held_.find(key);
  if (known == held_.end()) {
    if (held_.size() >= kMost) return;
    known = held_.emplace(key, Held()).first;
    if (const auto earlier = earlier_.extract(key)) known->second.idle_seconds = earlier.mapped();
  }
  Held& held = known->second;
  held.device = std::move(device);
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
    out.begin(kIdle)(key.place.uuid, key.place.partition, key.workload, idle_seconds);
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
    in(key.place.uuid, key.place.partition, key.workload).amounts(earlier[key]);
    in.check(in.kind() == kIdle && earlier.size() <= kMost);
  }
  if (in.failed()) return Error("the idle times of allocations, line " + std::to_string(in.line()));
  earlier_ = std::move(earlier);
  return Done{};
}

}  // namespace gpumeter::allocation
