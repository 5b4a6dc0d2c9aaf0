#include "exporter/json/devices.hpp"

#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <vector>

#include "exporter/json/health.hpp"

namespace gpumeter {
namespace {

using Json = nlohmann::ordered_json;

Json known(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json as_json(const DeviceStatus& device) {
  Json json;
  json["index"] = device.index;
  json["uuid"] = device.uuid;
  json["vendor"] = known(device.vendor);
  json["model"] = known(device.model);
  json["pci_address"] = known(device.pci_address);
  json["collector"] = device.collector;
  json["driver"] = known(device.driver);
  json["up"] = device.up;
  json["state"] = device.state;
  const auto last = device.last_success_timestamp_seconds;
  json["last_success_timestamp_seconds"] = last ? Json(*last) : Json();
  return json;
}

Json as_json(const UnreadDevice& device) {
  Json json;
  json["pci_address"] = device.pci_address;
  json["vendor"] = device.vendor;
  json["pci_id"] = device.pci_id;
  json["driver"] = known(device.driver);
  json["module"] = device.module;
  json["why"] = device.why;
  json["remedy"] = device.remedy;
  return json;
}

template <class Item>
Json list_of(std::span<const Item> items) {
  Json list = Json::array();
  for (const Item& item : items) list.push_back(as_json(item));
  return list;
}

using health::DeviceHealth;
using health::Finding;

/// Throws on an unknown word.
template <class Names>
auto word_of(const Names& names, const Json& json) {
  return names.find(json.get<std::string>()).value();
}

Nanoseconds since(const Json& json, Nanoseconds now) {
  const std::chrono::duration<double> age(json.at("since_seconds").get<double>());
  return now - std::chrono::duration_cast<Nanoseconds>(age);
}

Finding finding_of(const Json& json, Nanoseconds now) {
  Finding finding;
  finding.reason = json.at("reason").get<std::string>();
  finding.severity = word_of(health::kSeverityNames, json.at("severity"));
  finding.action = word_of(health::kActionNames, json.at("action"));
  finding.text = json.at("text").get<std::string>();
  finding.value = json.at("value").is_null() ? 0 : json.at("value").get<double>();
  finding.since = since(json, now);
  finding.alert = json.at("alert").get<std::string>();
  finding.runbook = json.at("runbook").get<std::string>();
  return finding;
}

std::vector<Finding> findings_of(const Json& list, Nanoseconds now) {
  std::vector<Finding> findings;
  for (const Json& each : list) findings.push_back(finding_of(each, now));
  return findings;
}

DeviceHealth device_of(const Json& json, Nanoseconds now) {
  DeviceHealth device;
  device.gpu = json.at("gpu").get<std::string>();
  device.uuid = json.at("uuid").get<std::string>();
  device.vendor = json.at("vendor").get<std::string>();
  device.model = json.at("model").get<std::string>();
  device.pci_address = json.at("pci_address").get<std::string>();
  device.state = word_of(health::kStateNames, json.at("state"));
  device.since = since(json, now);
  device.findings = findings_of(json.at("reasons"), now);
  return device;
}

}  // namespace

// Defined here because few files may include nlohmann's header.
Result<health::Report> parse_health_json(const std::string& body, Nanoseconds now) try {
  const Json json = Json::parse(body);
  health::Report report;
  report.at = now;
  for (const Json& device : json.at("devices")) report.devices.push_back(device_of(device, now));
  report.machine = findings_of(json.at("machine"), now);
  report.state = word_of(health::kStateNames, json.at("state"));
  return report;
} catch (const std::exception& problem) {
  return Error(std::string("the answer is not that of this version: ") + problem.what());
}

std::string devices_json(std::span<const DeviceStatus> devices, std::span<const UnreadDevice> unread) {
  Json root;
  root["devices"] = list_of(devices);
  root["unread"] = list_of(unread);
  // Strings from drivers may contain invalid UTF-8: the dump replaces it by U+FFFD instead of throwing.
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gpumeter
