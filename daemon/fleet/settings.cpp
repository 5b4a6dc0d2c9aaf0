#include "daemon/fleet/settings.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

namespace gpumeter {
namespace {

using options::checked;
using options::Complaint;
using options::enumerate;
using options::found;
using options::must_be;
using options::Node;
using options::Option;
using options::option;
using options::option_of;
using options::printable;
using options::Reload;

/// The values of the label `vendor`.
const std::vector<std::string> kVendors = {"amd",       "apple",       "arm",     "aws",
                                           "broadcom",  "intel",       "nvidia",  "qualcomm",
                                           "simulated", "tenstorrent", "vivante", "other"};

bool DeviceLabels::*label_of(const Node& node) {
  for (const DeviceLabelName& label : kDeviceLabelNames) {
    if (node.kind == Node::Kind::scalar && label.name == node.text) return label.member;
  }
  return nullptr;
}

std::vector<std::string> label_names() {
  std::vector<std::string> names;
  for (const DeviceLabelName& label : kDeviceLabelNames) names.emplace_back(label.name);
  return names;
}

/// Returns the PCI address of a key in the spelling of the devices; empty for a uuid.
std::string pci_address_of(std::string_view key) {
  constexpr std::string_view kShape = "hh:hh.h";
  if (key.size() < kShape.size()) return {};
  const std::string_view tail = key.substr(key.size() - kShape.size());
  const bool fits = std::equal(tail.begin(), tail.end(), kShape.begin(), [](char c, char shape) {
    return shape == 'h' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c == shape;
  });
  if (!fits) return {};
  std::string address = "0000:" + std::string(tail);
  const std::string_view domain = key.substr(0, key.size() - kShape.size());
  // nvidia-smi prints the domain with eight digits.
  if (domain.size() >= 5) address.replace(0, 5, domain.substr(domain.size() - 5));
  std::transform(address.begin(), address.end(), address.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return address;
}

Complaint check_device_names(const std::map<std::string, std::string>& names) {
  for (const auto& [device, name] : names) {
    if (device.empty() || name.empty())
      return "must map a uuid or PCI address to a name; one of them is empty";
    const std::string address = pci_address_of(device);
    if (!address.empty() && device != address) {
      return "must spell the PCI address as \"" + printable(address) + "\", not \"" + printable(device) +
             "\"";
    }
  }
  return std::nullopt;
}

}  // namespace

// The types of this section.

std::string type_words(const DeviceLabels&) {
  std::string words = "list of ";
  for (const std::string& name : label_names()) words += (words.ends_with(' ') ? "" : ", ") + name;
  return words;
}

Complaint read(const Node& node, DeviceLabels& value) {
  const std::string words = "a list of " + enumerate(label_names(), "or");
  if (node.kind != Node::Kind::sequence) return must_be(words, node);
  DeviceLabels labels{.vendor = false, .model = false};
  for (const Node& item : node.children) {
    bool DeviceLabels::*const label = label_of(item);
    if (label == nullptr) return "must be " + words + "; gpu and uuid are always present; not " + found(item);
    if (labels.*label) return "must list each label once, not " + found(item) + " twice";
    labels.*label = true;
  }
  value = labels;
  return std::nullopt;
}

std::string show(const DeviceLabels& value) {
  std::vector<std::string> names;
  for (const DeviceLabelName& label : kDeviceLabelNames) {
    if (value.*label.member) names.emplace_back(label.name);
  }
  return options::listed('[', names, ']');
}

std::string type_words(const ExpectedDevices&) { return "whole number, or a map of them by vendor"; }

Complaint read(const Node& node, ExpectedDevices& value) {
  std::map<std::string, unsigned> counts;
  const bool is_map = node.kind == Node::Kind::map;
  if (!is_map && options::read(node, counts[std::string(ExpectedDevices::kAnyVendor)])) {
    return must_be("a whole number, or a map of numbers by vendor such as {nvidia: 8}", node);
  }
  for (const Node& child : node.children) {
    if (std::ranges::find(kVendors, child.key) == kVendors.end()) {
      return "must name vendors out of " + enumerate(kVendors, "and") + ", not \"" + printable(child.key) +
             "\"";
    }
    if (const auto complaint = options::read(child, counts[child.key])) {
      return "the value of \"" + printable(child.key) + "\" " + complaint->text;
    }
  }
  value.by_vendor = std::move(counts);
  return std::nullopt;
}

std::string show(const ExpectedDevices& value) {
  const auto of_machine = value.by_vendor.find(std::string(ExpectedDevices::kAnyVendor));
  if (of_machine != value.by_vendor.end()) return options::show(of_machine->second);
  std::vector<std::string> items;
  for (const auto& [vendor, count] : value.by_vendor) items.push_back(vendor + ": " + options::show(count));
  return options::listed('{', items, '}');
}

namespace {

// One row an option.
// clang-format off
constexpr Option kDevices[] = {
    option<&DeviceOptions::expected>("expected", Reload::applies, "Number of GPUs that the machine should have, such as `8`, or by vendor, such as `{nvidia: 8}`, for the alert on missing ones. `{}`: no alert."),
    option<&DeviceOptions::forget>("forget", Reload::applies, "How long a missing device keeps its `gpu_up 0`. never: until `gpumeter forget UUID`. Time in which the daemon does not run does not count."),
    option<&DeviceOptions::names>("names", Reload::applies, "Names of devices, by uuid or PCI address, for the label `name`.", checked<check_device_names>),
};
constexpr Option kLabels[] = {
    option_of<DeviceLabels>("device_labels", Reload::restart, "Labels of every device series, in addition to gpu and uuid."),
};
// clang-format on

}  // namespace

constinit const options::Section kDeviceSection = options::section("devices", kDevices);
constinit const options::Section kDeviceLabelsSection = options::section("", kLabels);

}  // namespace gpumeter
