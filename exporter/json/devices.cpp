#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/scalars.hpp"
#include "collectors/events/xids.hpp"
#include "exporter/health/conditions.hpp"
#include "exporter/json/api.hpp"
#include "exporter/json/writer.hpp"

namespace gpumeter {
namespace {

using Json = nlohmann::json;

/// An object of a list, a member a line.
std::string object(std::initializer_list<std::pair<std::string_view, std::string>> members) {
  std::string text;
  for (const auto& [name, json] : members) {
    text.append(text.empty() ? "    {\n      " : ",\n      ")
        .append(json_quoted(name))
        .append(": ")
        .append(json);
  }
  return text + "\n    }";
}

/// null if it is empty.
std::string known(std::string_view value) { return value.empty() ? "null" : json_quoted(value); }

std::string as_json(const DeviceStatus& device) {
  const auto last = device.last_success_timestamp_seconds;
  return object({{"index", std::to_string(device.index)},
                 {"uuid", json_quoted(device.uuid)},
                 {"vendor", known(device.vendor)},
                 {"model", known(device.model)},
                 {"pci_address", known(device.pci_address)},
                 {"collector", json_quoted(device.collector)},
                 {"driver", known(device.driver)},
                 {"up", device.up ? "true" : "false"},
                 {"state", json_quoted(device.state)},
                 {"last_success_timestamp_seconds", last ? json_number(*last) : "null"}});
}

std::string as_json(const UnreadDevice& device) {
  return object({{"pci_address", json_quoted(device.pci_address)},
                 {"vendor", json_quoted(device.vendor)},
                 {"pci_id", json_quoted(device.pci_id)},
                 {"driver", known(device.driver)},
                 {"module", json_quoted(device.module)},
                 {"why", json_quoted(device.why)},
                 {"remedy", json_quoted(device.remedy)}});
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
  for (const Json& each : json.value("advisories", Json::array()))
    device.advice.push_back({each.at("advisory"), each.at("text"), each.at("source")});
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

void age(JsonWriter& out, Nanoseconds since, Nanoseconds now) {
  out.exact("since_seconds", std::max(0.0, std::round(to_seconds(now - since) * 10) / 10));
}

void findings(JsonWriter& out, std::string_view name, const std::vector<Finding>& all, Nanoseconds now) {
  out.list(name, all, [&](const Finding& it) {
    out.open('{').text("reason", it.reason).text("severity", to_string(it.severity));
    out.text("action", to_string(it.action)).text("text", it.text).exact("value", it.value);
    age(out, it.since, now);
    out.text("alert", it.alert).text("runbook", it.runbook).close('}');
  });
}

void advisories(JsonWriter& out, const std::vector<health::Advice>& all) {
  out.list("advisories", all, [&](const health::Advice& it) {
    out.open('{').text("advisory", it.name).text("text", it.text).text("source", it.source).close('}');
  });
}

void condition(JsonWriter& out, const Condition& it) {
  const health::Term& first = it.terms[0];
  std::vector<std::string_view> families;
  for (const health::Term& term : it.terms) {
    for (const MetricDescriptor* family : {term.reading.family, term.of.family}) {
      if (family != nullptr && std::ranges::find(families, family->name) == families.end())
        families.push_back(family->name);
    }
  }
  out.open('{').text("reason", it.reason).text("severity", to_string(it.severity));
  out.text("action", to_string(it.action)).text("alert", it.alert).text("runbook", runbook_of(it));
  out.list("families", families, [&](std::string_view name) { out.text(name); });
  out.text("test", test_text(it)).exact("threshold", first.threshold);
  out.exact("window_seconds", static_cast<double>(first.window.count()));
  out.exact("hold_seconds", static_cast<double>(it.hold.count())).text("text", it.text).close('}');
}

void xid(JsonWriter& out, const events::Xid& it) {
  out.open('{').text("xid", it.code).text("class", events::kXidClassNames.of(it.kind));
  out.text("bucket", it.bucket).text("action", to_string(it.action));
  out.text("severity", it.severity == events::Severity::none ? std::string_view() : to_string(it.severity));
  out.text("meaning", it.meaning).close('}');
}

/// A list, an element a line.
template <class Items, class Write>
void lines(JsonWriter& out, std::string_view name, const Items& items, Write write) {
  out.key(name).open('[');
  for (const auto& each : items) write(out.line(), each);
  out.close_lines(']');
}

}  // namespace

std::string health_json(const health::Report& report, Nanoseconds now) {
  JsonWriter out;
  out.open('{');
  lines(out, "devices", report.devices, [now](JsonWriter& to, const DeviceHealth& it) {
    to.open('{').text("gpu", it.gpu).text("uuid", it.uuid).text("vendor", it.vendor).text("model", it.model);
    to.text("pci_address", it.pci_address).text("state", to_string(it.state));
    age(to, it.since, now);
    findings(to, "reasons", it.findings, now);
    if (!it.advice.empty()) advisories(to, it.advice);
    to.close('}');
  });
  findings(out, "machine", report.machine, now);
  out.text("state", to_string(report.state)).close('}');
  return out.take();
}

std::string conditions_json() {
  JsonWriter out;
  out.open('{');
  lines(out, "conditions", health::all_conditions(), condition);
  lines(out, "xids", events::kXids, xid);
  out.close('}');
  return out.take();
}

}  // namespace gpumeter
