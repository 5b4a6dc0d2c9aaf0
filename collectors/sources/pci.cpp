#include "collectors/sources/pci.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "collectors/sources/sysfs.hpp"

namespace gpumeter::pci {
namespace {

constexpr std::uint32_t kBaseDisplay = 0x03;
constexpr std::uint32_t kBaseAccelerator = 0x12;
constexpr std::uint32_t kBridge = 0x0604;  // base class and sub-class of a PCI-to-PCI bridge

/// Takes `digits` hexadecimal digits and the separator behind them off the front of `text`; `after` 0 stands
/// for the end.
template <class T>
bool take_hex(std::string_view& text, std::size_t digits, char after, T& value) noexcept {
  unsigned parsed = 0;
  const char* const end = text.data() + std::min(digits, text.size());
  const auto [stop, error] = std::from_chars(text.data(), end, parsed, 16);
  if (digits == 0 || error != std::errc{} || stop != end) return false;
  text.remove_prefix(std::min(digits, text.size()));
  value = static_cast<T>(parsed);
  if (after == '\0') return text.empty();
  if (!text.starts_with(after)) return false;
  text.remove_prefix(1);
  return true;
}

/// The value of one KEY=value line; empty if there is none.
std::string_view uevent_value(std::string_view uevent, std::string_view key) {
  while (!uevent.empty()) {
    const std::string_view line = uevent.substr(0, uevent.find('\n'));
    uevent.remove_prefix(std::min(line.size() + 1, uevent.size()));
    if (line.starts_with(key) && line.substr(key.size()).starts_with('=')) return line.substr(key.size() + 1);
  }
  return {};
}

template <class T>
void parse_hex(std::string_view text, T& value) noexcept {
  unsigned parsed = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), parsed, 16);
  if (error == std::errc{} && stop == text.data() + text.size()) value = static_cast<T>(parsed);
}

std::optional<Function> read_parent(const Function& function) {
  return read_function(std::filesystem::path(function.path).parent_path().string());
}

}  // namespace

std::optional<Address> parse_address(std::string_view text) noexcept {
  Address address;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon < 4 || colon > 8) return std::nullopt;
  if (!take_hex(text, colon, ':', address.domain) || !take_hex(text, 2, ':', address.bus) ||
      !take_hex(text, 2, '.', address.device) || !take_hex(text, 1, '\0', address.function)) {
    return std::nullopt;
  }
  return address;
}

std::string to_string(const Address& address) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", address.domain, address.bus, address.device,
                address.function);
  return text.data();
}

// All but the revision is in `uevent`, in one read; the driver link outlives a uevent that was written before
// the driver was bound.
std::optional<Function> read_function(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(folder, error);
  const std::optional<Address> address = parse_address(path.filename().string());
  if (error || !address) return std::nullopt;
  Function function;
  function.address = *address;
  function.path = path.string();
  const std::string uevent = sysfs::read_text(function.path + "/uevent");
  const std::string_view id = uevent_value(uevent, "PCI_ID");
  parse_hex(id.substr(0, id.find(':')), function.vendor);
  parse_hex(id.substr(std::min(id.find(':') + 1, id.size())), function.device);
  parse_hex(uevent_value(uevent, "PCI_CLASS"), function.class_code);
  function.driver = sysfs::link_name(function.path + "/driver");
  if (function.driver.empty()) function.driver = uevent_value(uevent, "DRIVER");
  if (const auto revision = sysfs::read_integer(function.path + "/revision")) {
    function.revision = static_cast<std::uint8_t>(*revision);
  }
  return function;
}

bool is_display(const Function& function) noexcept {
  const std::uint32_t base = function.class_code >> 16;
  return base == kBaseDisplay || base == kBaseAccelerator;
}

std::vector<Function> display_adapters(const std::string& sysfs_root) {
  const std::string bus = sysfs_root + "/bus/pci/devices";
  std::vector<Function> adapters;
  for (const std::string& name : sysfs::list(bus)) {
    std::optional<Function> function = read_function(bus + "/" + name);
    if (function && is_display(*function)) adapters.push_back(std::move(*function));
  }
  std::sort(adapters.begin(), adapters.end(),
            [](const Function& a, const Function& b) { return a.address < b.address; });
  return adapters;
}

std::optional<int> numa_node(const Function& function) {
  const auto node = sysfs::read_integer(function.path + "/numa_node");
  if (!node || *node < 0) return std::nullopt;  // -1: the machine has one node only, or does not say
  return static_cast<int>(*node);
}

std::string_view vendor_word(std::uint16_t vendor) noexcept {
  switch (vendor) {
    case 0x10de:
      return "nvidia";
    case kVendorAmd:
      return "amd";
    case 0x8086:
      return "intel";
    default:
      return "other";
  }
}

bool is_gpu_driver(std::string_view driver) noexcept {
  constexpr std::string_view kOthers[] = {"",
                                          "ast",
                                          "mgag200",
                                          "hibmc-drm",
                                          "aspeed_gfx",
                                          "bochs-drm",
                                          "cirrus",
                                          "cirrus-qemu",
                                          "qxl",
                                          "vboxvideo",
                                          "vmwgfx",
                                          "virtio-pci",
                                          "hyperv_drm",
                                          "simpledrm",
                                          "efifb",
                                          "vesafb",
                                          "simple-framebuffer",
                                          "vfio-pci",
                                          "pci-stub",
                                          "xen-pciback"};
  return std::find(std::begin(kOthers), std::end(kOthers), driver) == std::end(kOthers);
}

std::string upstream_port(const Function& function) {
  std::string port = function.path;
  std::optional<Function> bridge = read_parent(function);
  while (bridge && bridge->vendor == function.vendor && bridge->class_code >> 8 == kBridge) {
    std::optional<Function> above = read_parent(*bridge);
    if (!above) break;  // a root port: its parent is the root complex
    port = bridge->path;
    bridge = std::move(above);
  }
  return port;
}

std::optional<int> link_generation(std::string_view speed) noexcept {
  constexpr double kGigatransfers[] = {2.5, 5, 8, 16, 32, 64};  // PCI Express base specification, 1.0 to 6.0
  double value = 0;
  const auto parsed = std::from_chars(speed.data(), speed.data() + speed.size(), value);
  if (parsed.ec != std::errc{}) return std::nullopt;
  const auto* const found = std::find(std::begin(kGigatransfers), std::end(kGigatransfers), value);
  if (found == std::end(kGigatransfers)) return std::nullopt;
  return static_cast<int>(found - std::begin(kGigatransfers)) + 1;
}

bool is_suspended(std::string_view runtime_status) noexcept {
  return runtime_status == "suspended" || runtime_status == "suspending";
}

}  // namespace gpumeter::pci
