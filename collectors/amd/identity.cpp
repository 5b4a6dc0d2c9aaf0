#include "collectors/amd/identity.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <set>
#include <string_view>

#include "base/text.hpp"
#include "collectors/files/discovery.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::amd {
namespace {

/// One line "73BF,\tC0,\tAMD Radeon RX 6900 XT" of amdgpu.ids.
struct IdLine {
  unsigned device = 0;
  unsigned revision = 0;
  std::string_view name;
};

// Comments and the version line do not start with two numbers.
std::optional<IdLine> parse_id_line(std::string_view line) {
  const auto device = parse_number<unsigned>(trimmed(take_until(line, ',')), 16);
  const auto revision = parse_number<unsigned>(trimmed(take_until(line, ',')), 16);
  const std::string_view name = trimmed(line);
  if (!device || !revision || name.empty()) return std::nullopt;
  return IdLine{*device, *revision, name};
}

std::string model_of(const pci::Function& function, const std::string& ids_file) {
  std::string name = marketing_name(ids_file, function.device, function.revision);
  if (name.empty()) name = sysfs::read_text(function.path + "/product_name");  // from the board's EEPROM
  if (!name.empty()) return name;
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "AMD %04x", function.device);
  return text.data();
}

std::vector<std::string> linked_to(const std::vector<KfdNode>& card, const std::vector<KfdLink>& links) {
  std::vector<std::string> addresses;
  for (const KfdLink& link : links) {
    const auto is_its = [&](const KfdNode& node) { return node.address == link.from; };
    if (std::any_of(card.begin(), card.end(), is_its)) addresses.push_back(pci::to_string(link.to));
  }
  return addresses;
}

}  // namespace

std::string marketing_name(const std::string& ids_file, std::uint16_t device,
                           std::optional<std::uint8_t> revision) {
  std::ifstream file(ids_file);
  std::set<std::string, std::less<>> names;
  for (std::string text; std::getline(file, text);) {
    const std::optional<IdLine> line = parse_id_line(text);
    if (!line || line->device != device) continue;
    if (revision && line->revision == *revision) return std::string(line->name);
    names.emplace(line->name);
  }
  return !revision && names.size() == 1 ? *names.begin() : std::string();
}

std::string uuid_of(const pci::Function& function) {
  const std::string id = sysfs::read_text(function.path + "/unique_id");
  const bool none = id.find_first_not_of('0') == std::string::npos;  // empty, "0" and all zeros
  return none ? pci::to_string(function.address) : "GPU-" + id;
}

bool hides_uuid(const pci::Function& function) {
  const sysfs::File file(function.path + "/unique_id");
  if (file.status() == ReadStatus::gone) return false;  // an older chip
  std::array<char, 32> buffer{};
  return file.read(buffer).status != ReadStatus::ok;
}

std::string smc_version(std::string_view text) {
  const std::optional<std::int64_t> version = sysfs::parse_integer(text);
  if (!version || *version <= 0 || *version > 0xffffffff) return "";
  std::array<char, 16> dotted{};  // the highest byte is a program number, which the driver's log omits too
  std::snprintf(dotted.data(), dotted.size(), "%d.%d.%d", static_cast<int>(*version >> 16 & 0xff),
                static_cast<int>(*version >> 8 & 0xff), static_cast<int>(*version & 0xff));
  return dotted.data();
}

DeviceInfo identify(const pci::Function& function, const IdentitySources& sources) {
  const drm::Nodes nodes = sources.nodes.of(function);
  const std::optional<int> minor = nodes.render ? nodes.render : nodes.card;
  DeviceInfo info = files::described(function);
  info.uuid = uuid_of(function);
  info.vendor = "amd";
  info.model = model_of(function, sources.ids_file);
  info.serial = sysfs::read_text(function.path + "/serial_number");
  info.driver_version = sysfs::read_text(sources.sysfs_root + "/module/" + function.driver + "/version");
  info.vbios_version = sysfs::read_text(function.path + "/vbios_version");
  info.firmware_version = smc_version(sysfs::read_text(function.path + "/fw_version/smc_fw_version"));
  info.minor = minor ? std::to_string(*minor) : "";
  info.partitioning = to_string(partition_modes(function.path));
  const std::vector<KfdNode> card =
      kfd_nodes_of(sources.kfd, {function.address, function.device, nodes.render});
  info.linked_to = linked_to(card, sources.links);
  if (const auto node = kfd_whole(card)) {
    info.architecture = architecture_name(node->target);
    info.compute_units = node->compute_units;
  }
  return info;
}

void separate_twins(std::vector<DeviceInfo>& devices, std::vector<std::string>& notes) {
  std::set<std::string, std::less<>> seen;
  for (DeviceInfo& device : devices) {
    if (seen.insert(device.uuid).second) continue;
    notes.push_back(device.pci_address + ": another card has the unique_id of " + device.uuid +
                    ", so this one is identified by its PCI address");
    device.uuid = device.pci_address;
  }
}

}  // namespace gpumeter::amd
