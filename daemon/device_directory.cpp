#include "daemon/device_directory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace gpumeter {
namespace {

using nlohmann::json;

json to_json(const KnownDevice& device) {
  return {{"uuid", device.info.uuid},
          {"index", device.index},
          {"collector", device.collector},
          {"vendor", device.info.vendor},
          {"model", device.info.model},
          {"pci_address", device.info.pci_address},
          {"last_seen", std::chrono::duration_cast<std::chrono::seconds>(device.last_seen).count()}};
}

KnownDevice from_json(const json& entry) {
  KnownDevice device;
  device.index = entry.at("index").get<unsigned>();
  device.collector = entry.at("collector").get<std::string>();
  device.info.uuid = entry.at("uuid").get<std::string>();
  device.info.vendor = entry.at("vendor").get<std::string>();
  device.info.model = entry.at("model").get<std::string>();
  device.info.pci_address = entry.at("pci_address").get<std::string>();
  device.last_seen = std::chrono::seconds(entry.at("last_seen").get<std::int64_t>());
  return device;
}

std::map<std::string, KnownDevice> parse(std::istream& file) {
  std::map<std::string, KnownDevice> devices;
  const json document = json::parse(file);
  for (const json& entry : document.at("devices")) {
    KnownDevice device = from_json(entry);
    devices.emplace(device.info.uuid, std::move(device));
  }
  return devices;
}

Error system_error(const std::string& what) { return Error(what + ": " + std::strerror(errno)); }

Result<Done> write_durably(const std::string& path, const std::string& text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return system_error(path);
  const bool written =
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fsync(fd) == 0;
  const Error error = system_error(path);
  close(fd);
  if (!written) return error;
  return Done{};
}

}  // namespace

Result<Done> DeviceDirectory::load() {
  std::ifstream file(path());
  if (!file) return Done{};
  try {
    devices_ = parse(file);
    return Done{};
  } catch (const std::exception& problem) {  // nlohmann throws; what was read so far is not trusted
    std::error_code ignored;
    std::filesystem::rename(path(), path() + ".bad", ignored);
    return Error(path() + ": " + problem.what() + "; set aside as devices.json.bad, indexes start anew");
  }
}

Result<Done> DeviceDirectory::save() const {
  json list = json::array();
  for (const auto& [uuid, device] : devices_) list.push_back(to_json(device));
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  const std::string text = json{{"devices", list}}.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  if (Result<Done> written = write_durably(path() + ".new", text); !written) return written;
  if (std::rename((path() + ".new").c_str(), path().c_str()) != 0) return system_error(path());
  return Done{};
}

KnownDevice& DeviceDirectory::admit(const std::string& collector, const DeviceInfo& info, unsigned preferred,
                                    Nanoseconds now) {
  const auto [found, is_new] = devices_.try_emplace(info.uuid);
  KnownDevice& device = found->second;
  if (is_new) device.index = free_index(info.uuid, preferred);
  device.collector = collector;
  device.info = info;
  device.last_seen = now;
  return device;
}

std::vector<std::string> DeviceDirectory::forget(Nanoseconds before) {
  std::vector<std::string> forgotten;
  for (auto device = devices_.begin(); device != devices_.end();) {
    const bool old = device->second.last_seen < before;
    if (old) forgotten.push_back(device->first);
    device = old ? devices_.erase(device) : std::next(device);
  }
  return forgotten;
}

KnownDevice* DeviceDirectory::find(const std::string& uuid) {
  const auto device = devices_.find(uuid);
  return device == devices_.end() ? nullptr : &device->second;
}

unsigned DeviceDirectory::free_index(const std::string& uuid, unsigned preferred) const {
  bool taken = false;
  unsigned next = 0;
  for (const auto& [other, device] : devices_) {
    if (other == uuid) continue;
    taken = taken || device.index == preferred;
    next = std::max(next, device.index + 1);
  }
  return taken ? next : preferred;
}

}  // namespace gpumeter
