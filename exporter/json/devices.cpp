#include "exporter/json/devices.hpp"

#include <nlohmann/json.hpp>

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

}  // namespace

std::string devices_json(std::span<const DeviceStatus> devices) {
  Json list = Json::array();
  for (const DeviceStatus& device : devices) list.push_back(as_json(device));
  Json root;
  root["devices"] = std::move(list);
  // Strings from drivers may contain invalid UTF-8: the dump replaces it by U+FFFD instead of throwing.
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gpumeter
