#include "collectors/amd/discovery.hpp"

#include <optional>
#include <set>
#include <utility>

#include "collectors/sources/drm.hpp"

namespace gpumeter::amd {
namespace {

constexpr const char* kThread = "find-amd-card";

bool is_ours(const pci::Function& function) {
  return function.driver == "amdgpu" || function.driver == "radeon";
}

/// The reason why a card without a supported driver is not read, and the remedy.
std::string note_of(const pci::Function& function) {
  const std::string card = pci::to_string(function.address) + ": AMD GPU ";
  if (function.driver.empty()) return card + "without a driver: load amdgpu (modprobe amdgpu)";
  return card + "is bound to " + function.driver + ", so it is not read; amdgpu would make it readable";
}

void keep_text(std::string& text, const std::string& known) {
  if (text.empty()) text = known;
}

}  // namespace

AmdDiscovery::AmdDiscovery(std::string sysfs_root, std::string ids_file, const Clock& clock,
                           const std::shared_ptr<HangingCalls>& hanging)
    : sysfs_root_(std::move(sysfs_root)),
      ids_file_(std::move(ids_file)),
      bus_(kThread, clock, pci::read_function, hanging),
      topology_(kThread, pci::Scan::kAtMost, clock, hanging, "topology"),
      cards_(kThread, pci::Scan::kAtMost, clock, hanging, "card") {}

Discovery AmdDiscovery::find() {
  const pci::Scan::Found bus = bus_.adapters(sysfs_root_);
  forget_missing(bus);
  Discovery found;
  std::vector<pci::Function> cards;
  for (const pci::Function& function : bus.adapters) {
    if (function.vendor != pci::kVendorAmd) continue;
    if (is_ours(function)) {
      cards.push_back(function);
    } else {
      found.notes.push_back(note_of(function));
    }
  }
  identify_all(cards, found);
  for (const std::string& address : bus.silent) {
    keep_silent(address, "its PCI files cannot be read; retried", found);
  }
  separate_twins(found.devices, found.notes);
  return found;
}

void AmdDiscovery::identify_all(const std::vector<pci::Function>& cards, Discovery& found) {
  using Identity = std::optional<DeviceInfo>;  // nullopt: the driver refuses to return the uuid
  std::vector<std::string> addresses;
  std::map<std::string, pci::Function> functions;
  for (const pci::Function& card : cards) {
    addresses.push_back(pci::to_string(card.address));
    functions.emplace(addresses.back(), card);
  }
  auto answers =
      cards_.ask<Identity>(addresses, [functions, sources = present_sources()](const std::string& address) {
        const pci::Function& function = functions.at(address);
        return hides_uuid(function) ? Identity() : identify(function, *sources);
      });
  for (const std::string& address : addresses) {
    const auto answer = answers.values.find(address);
    if (answer == answers.values.end()) {
      keep_silent(address, "its identity files do not respond; retried", found);
    } else if (!answer->second || has_lost_uuid(*answer->second)) {
      keep_silent(address, "its unique_id cannot be read, as during a GPU reset; retried", found);
    } else {
      found.devices.push_back(completed(*std::move(answer->second)));
    }
  }
}

// The stored facts of a slot are valid only while the same card and driver are in it.
void AmdDiscovery::forget_missing(const pci::Scan::Found& bus) {
  std::set<std::string> present(bus.silent.begin(), bus.silent.end());
  for (const pci::Function& function : bus.adapters) {
    if (is_ours(function)) present.insert(pci::to_string(function.address));
  }
  std::erase_if(known_, [&](const auto& card) { return !present.contains(card.first); });
}

// A chip without a unique_id has an empty one, and a busy driver may leave it empty too.
bool AmdDiscovery::has_lost_uuid(const DeviceInfo& info) const {
  const auto known = known_.find(info.pci_address);
  return known != known_.end() && info.uuid == info.pci_address && known->second.uuid != info.uuid;
}

// The sources that identify all cards. The compute driver's topology is one tree for all of them. If its read
// hangs, the previous tree stays in force.
AmdDiscovery::Sources AmdDiscovery::present_sources() {
  auto answers =
      topology_.ask<Sources>({"topology"}, [root = sysfs_root_, ids = ids_file_](const std::string&) {
        std::vector<KfdNode> nodes = kfd_nodes(root);
        std::vector<KfdLink> links = kfd_links(root, nodes);
        return std::make_shared<const IdentitySources>(
            IdentitySources{root, ids, drm::NodeMap(root), std::move(nodes), std::move(links)});
      });
  if (answers.silent.empty()) sources_ = std::move(answers.values.begin()->second);
  if (sources_) return sources_;
  return std::make_shared<const IdentitySources>(IdentitySources{sysfs_root_, ids_file_, {}, {}, {}});
}

void AmdDiscovery::keep_silent(const std::string& address, const std::string& why, Discovery& found) const {
  found.notes.push_back(address + ": " + why);
  found.is_incomplete = true;
  const auto known = known_.find(address);
  if (known != known_.end()) found.devices.push_back(known->second);
}

// A text that cannot be read for a moment does not change the card's identity.
DeviceInfo AmdDiscovery::completed(DeviceInfo info) {
  DeviceInfo& known = known_[info.pci_address];
  if (known.uuid == info.uuid) {
    keep_text(info.serial, known.serial);
    keep_text(info.driver_version, known.driver_version);
    keep_text(info.vbios_version, known.vbios_version);
    keep_text(info.firmware_version, known.firmware_version);
    keep_text(info.architecture, known.architecture);
    keep_text(info.local_cpus, known.local_cpus);
    if (!info.compute_units) info.compute_units = known.compute_units;
    if (!info.numa_node) info.numa_node = known.numa_node;
  }
  return known = std::move(info);
}

}  // namespace gpumeter::amd
