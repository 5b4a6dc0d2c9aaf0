#include "collectors/sources/pci.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::pci {
namespace {

constexpr std::uint32_t kBaseDisplay = 0x03;
constexpr std::uint32_t kBaseAccelerator = 0x12;
constexpr std::uint32_t kBridge = 0x0604;  // base class and sub-class of a PCI-to-PCI bridge

// clang-format off
constexpr std::string_view kNoGpuDrivers[] = {
    "", "ast", "mgag200", "hibmc-drm", "aspeed_gfx", "bochs-drm", "cirrus", "cirrus-qemu", "qxl", "vboxvideo", "vmwgfx",
    "virtio-pci", "hyperv_drm", "simpledrm", "efifb", "vesafb", "simple-framebuffer", "vfio-pci", "pci-stub", "xen-pciback"};
// clang-format on

/// Parses a hexadecimal number of `least` to `most` digits.
template <class T>
std::optional<T> parse_hex(std::string_view text, std::size_t least, std::size_t most) noexcept {
  return text.size() >= least && text.size() <= most ? parse_number<T>(text, 16) : std::nullopt;
}

/// Returns the value of one KEY=value line; empty if there is none.
std::string_view uevent_value(std::string_view uevent, std::string_view key) {
  while (!uevent.empty()) {
    std::string_view line = take_until(uevent, '\n');
    if (take_until(line, '=') == key) return line;
  }
  return {};
}

std::optional<Function> read_parent(const Function& function) {
  return read_function(std::filesystem::path(function.path).parent_path().string());
}

}  // namespace

std::optional<Address> parse_address(std::string_view text) noexcept {
  const auto domain = parse_hex<std::uint32_t>(take_until(text, ':'), 4, 8);
  const auto bus = parse_hex<std::uint8_t>(take_until(text, ':'), 2, 2);
  const auto device = parse_hex<std::uint8_t>(take_until(text, '.'), 2, 2);
  const auto function = parse_hex<std::uint8_t>(text, 1, 1);
  if (!domain || !bus || !device || !function) return std::nullopt;
  return Address{*domain, *bus, *device, *function};
}

std::string to_string(const Address& address) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", address.domain, address.bus, address.device,
                address.function);
  return text.data();
}

// One read of `uevent` returns everything but the revision. A copied `uevent` may predate the driver's
// binding, so the `driver` link takes precedence.
std::optional<Function> read_function(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(folder, error);
  const std::optional<Address> address = parse_address(path.filename().string());
  if (error || !address) return std::nullopt;
  Function function;
  function.address = *address;
  function.path = path.string();
  const std::string uevent = sysfs::read_text(function.path + "/uevent");
  std::string_view id = uevent_value(uevent, "PCI_ID");
  function.vendor = parse_number<std::uint16_t>(take_until(id, ':'), 16).value_or(0);
  function.device = parse_number<std::uint16_t>(id, 16).value_or(0);
  function.class_code = parse_number<std::uint32_t>(uevent_value(uevent, "PCI_CLASS"), 16).value_or(0);
  function.driver = sysfs::link_name(function.path + "/driver");
  if (function.driver.empty()) function.driver = uevent_value(uevent, "DRIVER");
  if (const auto revision = sysfs::read_integer(function.path + "/revision")) {
    function.revision = static_cast<std::uint8_t>(*revision);
  }
  return function;
}

std::optional<int> numa_node(const Function& function) {
  const auto node = sysfs::read_integer(function.path + "/numa_node");
  if (!node || *node < 0) return std::nullopt;  // -1: one node only, or not reported
  return static_cast<int>(*node);
}

// The file holds "\n" if the kernel has no CPUs online near the function.
std::string local_cpus(const Function& function) {
  return sysfs::read_text(function.path + "/local_cpulist");
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
  return std::ranges::find(kNoGpuDrivers, driver) == std::end(kNoGpuDrivers);
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

bool has_placeholder_link(const std::string& port) {
  return sysfs::read_integer(port + "/max_link_width") == 1 &&
         link_generation(sysfs::read_text(port + "/max_link_speed")) == 1;
}

std::optional<int> link_generation(std::string_view speed) noexcept {
  constexpr double kGigatransfers[] = {2.5, 5, 8, 16, 32, 64};  // PCI Express base specification, 1.0 to 6.0
  const double value = take_number<double>(speed).value_or(0);
  const auto* const found = std::find(std::begin(kGigatransfers), std::end(kGigatransfers), value);
  if (found == std::end(kGigatransfers)) return std::nullopt;
  return static_cast<int>(found - std::begin(kGigatransfers)) + 1;
}

bool is_suspended(std::string_view runtime_status) noexcept {
  return runtime_status == "suspended" || runtime_status == "suspending";
}

namespace {

bool is_display(const Function& function) noexcept {
  const std::uint32_t base = function.class_code >> 16;
  return base == kBaseDisplay || base == kBaseAccelerator;
}

struct Answer {
  std::optional<Function> function;
  bool is_readable = true;
};

// While a driver resets its device, the device's `uevent` may be empty or unreadable.
Answer ask(const std::string& folder, const Scan::Read& read) {
  Answer answer{read(folder)};
  if (!answer.function || answer.function->vendor != 0) return answer;
  const ReadStatus uevent = sysfs::probe(answer.function->path + "/uevent");
  answer.is_readable = uevent == ReadStatus::ok || uevent == ReadStatus::gone;
  return answer;
}

}  // namespace

Scan::Found Scan::adapters(const std::string& sysfs_root) {
  const std::string bus = sysfs_root + "/bus/pci/devices/";
  auto answers = calls_.ask<Answer>(
      sysfs::list(bus), [bus, read = read_](const std::string& name) { return ask(bus + name, read); });
  Found found;
  found.is_whole = answers.has_asked;
  found.silent = std::move(answers.silent);
  for (auto& [name, answer] : answers.values) {
    if (!answer.is_readable) found.silent.push_back(name);
    if (answer.function && is_display(*answer.function))
      found.adapters.push_back(*std::move(answer.function));
  }
  std::sort(found.adapters.begin(), found.adapters.end(),
            [](const Function& a, const Function& b) { return a.address < b.address; });
  return found;
}

}  // namespace gpumeter::pci
