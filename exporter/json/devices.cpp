#include "exporter/json/devices.hpp"

#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/scalars.hpp"
#include "exporter/json/health.hpp"

namespace gpumeter {
namespace {

using Json = nlohmann::json;

/// An object of a list, a member a line.
class Object {
 public:
  Object& add(std::string_view name, const std::string& json) {
    text_.append(text_.empty() ? "    {\n      " : ",\n      ")
        .append(json_quoted(name))
        .append(": ")
        .append(json);
    return *this;
  }
  Object& text(std::string_view name, std::string_view value) { return add(name, json_quoted(value)); }
  /// null if it is empty.
  Object& known(std::string_view name, std::string_view value) {
    return value.empty() ? add(name, "null") : text(name, value);
  }
  std::string take() { return std::move(text_) + "\n    }"; }

 private:
  std::string text_;
};

std::string as_json(const DeviceStatus& device) {
  const auto last = device.last_success_timestamp_seconds;
  Object object;
  object.add("index", std::to_string(device.index)).text("uuid", device.uuid).known("vendor", device.vendor);
  object.known("model", device.model).known("pci_address", device.pci_address);
  object.text("collector", device.collector).known("driver", device.driver);
  object.add("up", device.up ? "true" : "false").text("state", device.state);
  return object.add("last_success_timestamp_seconds", last ? json_number(*last) : "null").take();
}

std::string as_json(const UnreadDevice& device) {
  Object object;
  object.text("pci_address", device.pci_address).text("vendor", device.vendor).text("pci_id", device.pci_id);
  object.known("driver", device.driver).text("module", device.module).text("why", device.why);
  return object.text("remedy", device.remedy).take();
}

template <class Item>
std::string list_of(std::span<const Item> items) {
  std::string list;
  for (const Item& item : items) list += (list.empty() ? "[\n" : ",\n") + as_json(item);
  return list.empty() ? "[]" : list + "\n  ]";
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
  const Json json = Json::parse(std::string_view(body));  // as the other users of the library
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
  return "{\n  \"devices\": " + list_of(devices) + ",\n  \"unread\": " + list_of(unread) + "\n}\n";
}

}  // namespace gpumeter
