#include "collectors/import/mapping.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"

namespace gpumeter::import {
namespace {

std::string numbers_of(const Sheet& sheet) {
  std::string text;
  for (const auto& [number, gpu] : sheet.gpus) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

/// A label's value in a tag ends at a comma, and the tags at a bar.
bool is_name(std::string_view name, std::string_view tag) {
  if (tag == "gpu") return parse_number<unsigned>(name).has_value();
  return !name.empty() && std::ranges::none_of(name, [](char c) { return c == '|' || c <= ' '; });
}

}  // namespace

Result<Mapping> parse_mapping(std::string_view list, std::string_view tag) {
  Mapping mapping;
  while (!list.empty()) {
    const std::string_view entry = take_until(list, ',');
    std::string_view name = entry;
    const std::string_view number = take_until(name, '=');
    const bool is_numbered = entry.find('=') != std::string_view::npos;
    const auto parsed = parse_number<unsigned>(number);
    if (!is_numbered) name = entry;
    if (!is_name(name, tag) || (is_numbered && !parsed)) return Error("no GPU: " + gpumeter::quoted(entry));
    const std::string device = std::string(tag) + ':' + std::string(name);
    if (is_numbered) {
      mapping.by_number[*parsed] = device;
    } else {
      mapping.in_order.push_back(device);
    }
  }
  return mapping;
}

Result<std::vector<Parcel>> parcels_of(const Sheet& sheet, const Mapping& mapping, double timestamp) {
  const double time = sheet.timestamp.value_or(timestamp);
  std::vector<Parcel> parcels;
  const auto add = [&](const std::string& device, const GpuResults& gpu) {
    parcels.push_back({device, gpu.lines(device, sheet.suite, time)});
  };
  for (const auto& [number, device] : mapping.by_number) {
    if (!sheet.gpus.contains(number)) {
      return Error("the file has no GPU " + std::to_string(number) + ", only " + numbers_of(sheet));
    }
  }
  const bool is_for_all = sheet.is_of_machine || sheet.gpus.size() == 1;
  if (!mapping.in_order.empty() && !is_for_all && mapping.in_order.size() != sheet.gpus.size()) {
    return Error("the file has results of " + std::to_string(sheet.gpus.size()) + " GPUs (" +
                 numbers_of(sheet) + "), and " + std::to_string(mapping.in_order.size()) + " are given");
  }
  auto next = mapping.in_order.begin();
  for (const auto& [number, gpu] : sheet.gpus) {
    const auto named = mapping.by_number.find(number);
    if (named != mapping.by_number.end()) {
      add(named->second, gpu);
    } else if (!mapping.in_order.empty() && is_for_all) {
      for (const std::string& device : mapping.in_order) add(device, gpu);
    } else if (!mapping.in_order.empty()) {
      add(*next++, gpu);
    } else if (!mapping.by_number.empty()) {
      continue;  // a choice of the file's GPUs
    } else if (!gpu.pci.empty()) {
      add("pci:" + gpu.pci, gpu);
    } else {
      return Error("the file does not identify " +
                   (sheet.is_of_machine ? std::string("its GPUs") : "GPU " + std::to_string(number)) +
                   "; name the GPUs with --gpu or --uuid");
    }
  }
  std::set<std::string> seen;
  for (const Parcel& parcel : parcels) {
    if (!seen.insert(parcel.device).second) return Error("two GPUs of the file are " + parcel.device);
  }
  return parcels;
}

}  // namespace gpumeter::import
