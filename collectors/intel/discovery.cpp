#include "collectors/intel/discovery.hpp"

#include <algorithm>
#include <utility>

#include "collectors/intel/identity.hpp"
#include "collectors/sources/drm.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::intel {
namespace {

constexpr const char* kThread = "find-intel-gpu";
constexpr std::uint32_t kBaseDisplay = 0x03;

bool is_ours(const pci::Function& function) { return function.driver == "i915" || function.driver == "xe"; }

bool exists(const std::string& path) { return sysfs::File(path).status() != ReadStatus::gone; }

/// Why a function is not read, and what helps; empty if it is read. An NPU is no GPU, and neither is a
/// virtual function that this machine shows beside its card (SR-IOV): the card's values include it.
std::string note_of(const pci::Function& function) {
  const std::string card = pci::to_string(function.address) + ": Intel GPU ";
  if (function.driver.empty()) return card + "without a driver: load xe or i915 (modprobe xe)";
  if (!is_ours(function)) {
    return card + "is bound to " + function.driver + ", so it is not read; xe or i915 would make it readable";
  }
  if (exists(function.path + "/physfn")) {
    return card + "is a virtual function of another one, whose values include it";
  }
  // Documentation/gpu/xe/xe_survivability.rst: the card starts without its firmware and computes nothing.
  if (exists(function.path + "/survivability_mode")) {
    return card + "is in survivability mode, so it is not read: install its firmware again (fwupdmgr)";
  }
  return "";
}

/// What the card's identity is read from.
struct Request {
  pci::Function function;
  std::string model;  ///< empty: not known yet
};

std::string model_of(const std::string& ids_file, std::uint16_t device) {
  std::string name = product_name(ids_file, device);
  return name.empty() ? number_name(device) : name;
}

}  // namespace

IntelDiscovery::IntelDiscovery(std::string sysfs_root, std::string ids_file, const Clock& clock,
                               const std::shared_ptr<HangingCalls>& hanging)
    : sysfs_root_(std::move(sysfs_root)),
      ids_file_(std::move(ids_file)),
      bus_(kThread, clock, pci::read_function, hanging),
      cards_(kThread, pci::Scan::kAtMost, clock, hanging, "card") {}

Discovery IntelDiscovery::find() {
  const pci::Scan::Found bus = bus_.adapters(sysfs_root_);
  Discovery found;
  Cards cards;
  for (const pci::Function& function : bus.adapters) {
    const bool is_gpu = function.class_code >> 16 == kBaseDisplay || is_ours(function);
    if (function.vendor != kVendorIntel || !is_gpu) continue;
    std::string note = note_of(function);
    if (note.empty()) {
      cards.emplace(pci::to_string(function.address), function);
    } else {
      found.notes.push_back(std::move(note));
    }
  }
  std::erase_if(known_, [&](const auto& card) {
    return !cards.contains(card.first) && std::ranges::find(bus.silent, card.first) == bus.silent.end();
  });
  identify_all(cards, found);
  for (const std::string& address : bus.silent) {
    keep_silent(address, "its PCI files cannot be read; retried", found);
  }
  return found;
}

// The list of PCI ids is long and changes rarely: a card's model is looked up once.
void IntelDiscovery::identify_all(const Cards& cards, Discovery& found) {
  std::vector<std::string> addresses;
  std::map<std::string, Request> requests;
  for (const auto& [address, function] : cards) {
    addresses.push_back(address);
    const auto known = known_.find(address);
    const bool is_same = known != known_.end() && known->second.driver == function.driver;
    requests.emplace(address, Request{function, is_same ? known->second.model : ""});
  }
  auto answers = cards_.ask<DeviceInfo>(
      addresses, [requests, ids = ids_file_, nodes = drm::NodeMap(sysfs_root_)](const std::string& address) {
        const Request& request = requests.at(address);
        std::string model = request.model.empty() ? model_of(ids, request.function.device) : request.model;
        return identify(request.function, nodes, std::move(model));
      });
  for (const std::string& address : addresses) {
    const auto answer = answers.values.find(address);
    if (answer == answers.values.end()) {
      keep_silent(address, "its identity files do not respond; retried", found);
    } else {
      found.devices.push_back(known_[address] = answer->second);
    }
  }
}

void IntelDiscovery::keep_silent(const std::string& address, const std::string& why, Discovery& found) const {
  found.notes.push_back(address + ": " + why);
  found.is_incomplete = true;
  const auto known = known_.find(address);
  if (known != known_.end()) found.devices.push_back(known->second);
}

}  // namespace gpumeter::intel
