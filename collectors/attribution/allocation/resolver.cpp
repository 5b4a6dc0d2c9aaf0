#include "collectors/attribution/allocation/resolver.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::allocation {
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

}  // namespace

Resolver::Resolver(std::span<const DeviceIdentity> devices, std::span<const PartitionFacts> partitions)
    : devices_(devices), partitions_(partitions) {
  for (const DeviceIdentity& device : devices_) in_pci_order_.push_back(&device);
  std::ranges::sort(in_pci_order_, {}, order_of);
}

std::optional<Resolver::Found> Resolver::find(const Selector& selector) const {
  const auto has_address = [&](const DeviceInfo& info) { return info.pci_address == selector.id; };
  if (selector.id.empty()) return std::nullopt;
  switch (selector.by) {
    case Selector::By::uuid:
      return by_uuid(selector.id);
    case Selector::By::pci_address:
      return only(selector.vendor, has_address);
    case Selector::By::minor:
      return by_minor(selector);
    case Selector::By::position:
      return in_order(selector);
  }
  return std::nullopt;
}

template <class Matches>
std::optional<Resolver::Found> Resolver::only(const std::string& vendor, Matches matches) const {
  std::optional<Found> found;
  for (const DeviceIdentity& device : devices_) {
    if (!is_of(device, vendor) || !matches(device.info)) continue;
    if (found) return std::nullopt;
    found = Found{&device, ""};
  }
  return found;
}

std::optional<Resolver::Found> Resolver::by_uuid(const std::string& uuid) const {
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
std::optional<Resolver::Found> Resolver::by_old_mig_name(const std::string& name) const {
  std::string_view rest = name;
  if (!rest.starts_with("MIG-GPU-")) return std::nullopt;
  rest.remove_prefix(std::string_view("MIG-").size());
  const std::string_view uuid = take_until(rest, '/');
  const std::string_view instance = take_until(rest, '/');
  const auto device = only("", [&](const DeviceInfo& info) { return info.uuid == uuid; });
  const auto part = std::ranges::find_if(partitions_, [&](const PartitionFacts& facts) {
    return facts.place.uuid == uuid && facts.gpu_instance == instance;
  });
  if (!device || part == partitions_.end()) return std::nullopt;
  return Found{device->device, part->place.partition};
}

std::string Resolver::instance_with_id(const std::string& uuid, std::string_view id) const {
  const auto known = std::ranges::find_if(partitions_, [&](const PartitionFacts& facts) {
    return facts.place.uuid == uuid && facts.gpu_instance == id;
  });
  return known == partitions_.end() ? "" : known->place.partition;
}

// `name`: PROFILE-ID-START. NVML gives the id of an instance's profile and its place to privileged callers
// only. Otherwise the instance is known if it is the only one of its profile.
std::string Resolver::instance_at_place(const std::string& uuid, std::string_view name) const {
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
    if (dra_profile(facts.profile) == without_compute_slices(name)) by_profile.insert(facts.place.partition);
  }
  return by_profile.size() == 1 && !are_places_known ? *by_profile.begin() : "";
}

// An instance that the driver does not list (yet) is its GPU.
std::optional<Resolver::Found> Resolver::by_minor(const Selector& selector) const {
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

std::optional<Resolver::Found> Resolver::in_order(const Selector& selector) const {
  std::optional<std::size_t> left = parse_number<std::size_t>(selector.id);
  if (!left) return std::nullopt;
  for (const DeviceIdentity* const device : in_pci_order_) {
    if (!is_of(*device, selector.vendor)) continue;
    if ((*left)-- == 0) return Found{device, ""};
  }
  return std::nullopt;
}

}  // namespace gpumeter::allocation
