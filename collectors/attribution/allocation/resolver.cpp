#include "collectors/attribution/allocation/resolver.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <tuple>

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

// An instance that the driver does not list (yet) is its GPU.
std::optional<Resolver::Found> Resolver::by_minor(const Selector& selector) const {
  std::string_view part = selector.id;
  const std::string_view minor = take_until(part, '/');
  auto found = only(selector.vendor, [&](const DeviceInfo& info) { return info.minor == minor; });
  if (!found || !part.starts_with("gi")) return found;
  part.remove_prefix(std::string_view("gi").size());
  const auto known = std::ranges::find_if(partitions_, [&](const PartitionFacts& facts) {
    return facts.place.uuid == found->device->info.uuid && facts.gpu_instance == part;
  });
  if (known != partitions_.end()) found->partition = known->place.partition;
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
