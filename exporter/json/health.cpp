#include "exporter/json/health.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/json/scalars.hpp"
#include "exporter/health/xids.hpp"

namespace gpumeter {
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
