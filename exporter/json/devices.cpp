#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/scalars.hpp"
#include "exporter/health/conditions.hpp"
#include "exporter/json/api.hpp"

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

namespace {

using health::Condition;
using health::DeviceHealth;
using health::Finding;

std::string age(Nanoseconds since, Nanoseconds now) {
  return json_number(std::max(0.0, std::round(to_seconds(now - since) * 10) / 10));
}

std::string field(std::string_view name, std::string_view value) {
  return json_quoted(name) + ":" + json_quoted(value);
}

std::string as_json(const Finding& finding, Nanoseconds now) {
  return "{" + field("reason", finding.reason) + "," + field("severity", to_string(finding.severity)) + "," +
         field("action", to_string(finding.action)) + "," + field("text", finding.text) +
         ",\"value\":" + json_number(finding.value) + ",\"since_seconds\":" + age(finding.since, now) + "," +
         field("alert", finding.alert) + "," + field("runbook", finding.runbook) + "}";
}

std::string as_json(const std::vector<Finding>& findings, Nanoseconds now) {
  std::string list;
  for (const Finding& finding : findings) list += (list.empty() ? "" : ",") + as_json(finding, now);
  return "[" + list + "]";
}

std::string as_json(const DeviceHealth& device, Nanoseconds now) {
  return "{" + field("gpu", device.gpu) + "," + field("uuid", device.uuid) + "," +
         field("vendor", device.vendor) + "," + field("model", device.model) + "," +
         field("pci_address", device.pci_address) + "," + field("state", to_string(device.state)) +
         ",\"since_seconds\":" + age(device.since, now) + ",\"reasons\":" + as_json(device.findings, now) +
         "}";
}

std::string families_of(const Condition& condition) {
  std::vector<std::string_view> names;
  for (const health::Term& term : condition.terms) {
    for (const MetricDescriptor* family : {term.reading.family, term.of.family}) {
      if (family != nullptr && std::ranges::find(names, family->name) == names.end())
        names.push_back(family->name);
    }
  }
  std::string list;
  for (const std::string_view name : names) list += (list.empty() ? "" : ",") + json_quoted(name);
  return "[" + list + "]";
}

std::string as_json(const Condition& condition) {
  const health::Term& first = condition.terms[0];
  return "{" + field("reason", condition.reason) + "," + field("severity", to_string(condition.severity)) +
         "," + field("action", to_string(condition.action)) + "," + field("alert", condition.alert) + "," +
         field("runbook", runbook_of(condition)) + ",\"families\":" + families_of(condition) + "," +
         field("test", test_text(condition)) + ",\"threshold\":" + json_number(first.threshold) +
         ",\"window_seconds\":" + json_number(static_cast<double>(first.window.count())) +
         ",\"hold_seconds\":" + json_number(static_cast<double>(condition.hold.count())) + "," +
         field("text", condition.text) + "}";
}

std::string as_json(const health::Xid& xid) {
  return "{" + field("xid", xid.code) + "," + field("class", health::kXidClassNames.of(xid.kind)) + "," +
         field("bucket", xid.bucket) + "," + field("action", to_string(xid.action)) + "," +
         field("severity", xid.is_finding ? to_string(xid.severity) : std::string_view()) + "," +
         field("meaning", xid.meaning) + "}";
}

template <class List>
std::string lines(const List& list) {
  std::string text;
  for (const auto& each : list) text += (text.empty() ? "\n" : ",\n") + as_json(each);
  return "[" + text + "\n]";
}

}  // namespace

std::string health_json(const health::Report& report, Nanoseconds now) {
  std::string devices;
  for (const DeviceHealth& device : report.devices) {
    devices += (devices.empty() ? "\n" : ",\n") + as_json(device, now);
  }
  return "{\"devices\":[" + devices + "\n],\"machine\":" + as_json(report.machine, now) + "," +
         field("state", to_string(report.state)) + "}\n";
}

std::string conditions_json() {
  return "{\"conditions\":" + lines(health::all_conditions()) + ",\"xids\":" + lines(health::xids()) + "}\n";
}

}  // namespace gpumeter
