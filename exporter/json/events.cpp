#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "exporter/json/api.hpp"
#include "exporter/json/writer.hpp"

namespace gpumeter {
namespace {

template <class Number>
void whole_number(JsonWriter& out, std::string_view name, const std::optional<Number>& value) {
  out.key(name).raw(value ? std::to_string(*value) : "null");
}

void text_or_null(JsonWriter& out, std::string_view name, std::string_view value) {
  value.empty() ? out.key(name).raw("null") : out.text(name, value);
}

void event(JsonWriter& out, const EventRecord& it, std::span<const DeviceIdentity> devices) {
  const auto device = std::ranges::find_if(devices, [&](const DeviceIdentity& each) {
    return !it.pci_address.empty() && each.info.pci_address == it.pci_address;
  });
  const bool is_known = device != devices.end();
  out.open('{').key("id").raw(std::to_string(it.id));
  out.number("time", to_seconds(it.time), JsonWriter::kTimeDigits);
  out.flag("time_estimated", it.is_time_estimated).text("source", it.source);
  out.key("device").open('{');
  text_or_null(out, "gpu", is_known ? std::to_string(device->index) : "");
  text_or_null(out, "uuid", is_known ? device->info.uuid : "");
  text_or_null(out, "pci_address", it.pci_address);
  text_or_null(out, "vendor", is_known ? device->info.vendor : it.vendor);
  out.close('}').text("kind", it.kind);
  whole_number(out, "code", it.code);
  whole_number(out, "subcode", it.subcode);
  whole_number(out, "link", it.link);
  whole_number(out, "instance", it.instance);
  whole_number(out, "pid", it.pid);
  out.key("count").raw(std::to_string(it.count));
  for (const auto& [name, value] : {std::pair("meaning", &it.meaning), std::pair("severity", &it.severity),
                                    std::pair("action", &it.action), std::pair("text", &it.text)}) {
    text_or_null(out, name, *value);
  }
  out.close('}');
}

}  // namespace

std::string events_json(std::span<const EventRecord> events, std::span<const DeviceIdentity> devices) {
  JsonWriter out;
  out.open('{').key("events").open('[');
  for (const EventRecord& it : events) event(out.line(), it, devices);
  out.close_lines(']').close('}');
  return out.take();
}

std::string event_of_stream(const EventRecord& it, std::span<const DeviceIdentity> devices) {
  JsonWriter out;
  event(out, it, devices);
  return "id: " + std::to_string(it.id) + "\ndata: " + out.take() + "\n";
}

}  // namespace gpumeter
