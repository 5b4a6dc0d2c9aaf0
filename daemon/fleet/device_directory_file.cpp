/// DeviceDirectory's functions for the file.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/descriptor.hpp"
#include "daemon/fleet/device_directory.hpp"

namespace gpumeter {
namespace {

using nlohmann::json;
using std::chrono::duration_cast;
using std::chrono::seconds;

// The entries of 4096 devices need less.
constexpr std::size_t kMostBytes = std::size_t{4} << 20;

// Nanoseconds have a range of 292 years.
constexpr std::int64_t kMostSeconds = 9'000'000'000;

// Clamps the time: a clock before 1970 or far ahead must not create a file that the next start rejects.
std::int64_t seconds_of(Nanoseconds time) {
  return std::clamp<std::int64_t>(duration_cast<seconds>(time).count(), 0, kMostSeconds);
}

json to_json(const KnownDevice& device) {
  return {{"uuid", device.info.uuid},
          {"index", device.index},
          {"collector", device.collector},
          {"vendor", device.info.vendor},
          {"model", device.info.model},
          {"pci_address", device.info.pci_address},
          {"last_seen", seconds_of(device.last_seen)},
          {"missing_seconds", seconds_of(device.missing)}};
}

// nlohmann accepts 1.0, -1 and 4e9 as numbers; none of them is an index.
std::int64_t whole_number(const json& entry, const char* key, std::int64_t most) {
  const json& value = entry.at(key);
  const bool in_range = value.is_number_unsigned() && value.get<std::uint64_t>() <= std::uint64_t(most);
  if (!in_range) {
    throw std::runtime_error(std::string(key) + " must be a whole number from 0 to " + std::to_string(most) +
                             ", not " + value.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  return value.get<std::int64_t>();
}

KnownDevice from_json(const json& entry) {
  KnownDevice device;
  device.info.uuid = entry.at("uuid").get<std::string>();
  if (device.info.uuid.empty()) throw std::runtime_error("uuid is empty");
  device.index = static_cast<unsigned>(whole_number(entry, "index", DeviceDirectory::kHighestIndex));
  device.collector = entry.at("collector").get<std::string>();
  device.info.vendor = entry.at("vendor").get<std::string>();
  device.info.model = entry.at("model").get<std::string>();
  device.info.pci_address = entry.at("pci_address").get<std::string>();
  device.last_seen = seconds(whole_number(entry, "last_seen", kMostSeconds));
  // Files of older versions lack this key.
  if (entry.contains("missing_seconds")) {
    device.missing = seconds(whole_number(entry, "missing_seconds", kMostSeconds));
  }
  return device;
}

using Devices = std::map<std::string, KnownDevice>;

using Owners = std::map<unsigned, std::string>;  // index -> uuid

void add(const json& entry, Devices& devices, Owners& owners) {
  KnownDevice device = from_json(entry);
  const std::string uuid = device.info.uuid;
  if (devices.contains(uuid)) throw std::runtime_error("uuid " + uuid + " is listed twice");
  const auto [owner, is_free] = owners.try_emplace(device.index, uuid);
  if (!is_free) {
    throw std::runtime_error("index " + std::to_string(device.index) + " is also used by " + owner->second);
  }
  devices.emplace(uuid, std::move(device));
}

struct Content {
  std::string machine_id;  // empty in files of older versions
  Devices devices;
};

/// Throws on wrong content, like nlohmann.
Content parse(const std::string& text) {
  Content content;
  Devices& devices = content.devices;
  Owners owners;
  const json document = json::parse(text);
  if (document.contains("machine_id")) content.machine_id = document.at("machine_id").get<std::string>();
  const json& list = document.at("devices");
  if (!list.is_array()) throw std::runtime_error("devices must be a list");
  for (std::size_t i = 0; i < list.size(); ++i) {
    try {
      add(list[i], devices, owners);
    } catch (const std::exception& problem) {
      throw std::runtime_error("devices[" + std::to_string(i) + "]: " + problem.what());
    }
  }
  return content;
}

Error system_error(const std::string& what) { return Error(what + ": " + std::strerror(errno)); }

/// O_NONBLOCK: open() must not wait for the other end of a FIFO.
Result<Descriptor> open_regular(const std::string& path, int flags) {
  Descriptor file(open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644));
  struct stat status {};
  if (!file || fstat(file.number(), &status) != 0) return system_error(path);
  if (!S_ISREG(status.st_mode)) return Error(path + ": is not a regular file");
  return file;
}

Result<std::string> read_whole(const std::string& path) {
  const Result<Descriptor> file = open_regular(path, O_RDONLY);
  if (!file) return file.error();
  std::string text;
  std::array<char, 16384> piece;
  while (text.size() <= kMostBytes) {
    const ssize_t got = read(file->number(), piece.data(), piece.size());
    if (got == 0) return text;
    if (got < 0 && errno != EINTR) return system_error(path);
    if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return Error(path + ": is larger than " + std::to_string(kMostBytes) + " bytes");
}

/// Returns the id in a file as described by machine-id(5); empty if the machine has none yet.
std::string machine_id_in(const std::string& path) {
  const Result<std::string> text = read_whole(path);
  const std::string id = text ? text->substr(0, text->find('\n')) : "";
  constexpr std::size_t kDigits = 32;
  return id.size() == kDigits && id.find_first_not_of("0123456789abcdef") == std::string::npos ? id : "";
}

/// Only root can give the file away. Everyone else owns both the folder and the file.
void give_to_owner_of(const std::string& folder, const Descriptor& file) {
  struct stat status {};
  if (geteuid() != 0 || stat(folder.c_str(), &status) != 0) return;
  [[maybe_unused]] const int ignored = fchown(file.number(), status.st_uid, status.st_gid);
}

Result<Done> write_durably(const std::string& folder, const std::string& path, const std::string& text) {
  const Result<Descriptor> file = open_regular(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file) return file.error();
  give_to_owner_of(folder, *file);
  const ssize_t written = write(file->number(), text.data(), text.size());
  if (written < 0) return system_error(path);
  if (static_cast<std::size_t>(written) < text.size()) return Error(path + ": No space left on device");
  if (fsync(file->number()) != 0) return system_error(path);
  return Done{};
}

/// Makes a rename in the folder durable. Not all file systems can: EINVAL.
Result<Done> sync_folder(const std::string& path) {
  const Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool is_done = folder && (fsync(folder.number()) == 0 || errno == EINVAL);
  if (!is_done) return system_error(path);
  return Done{};
}

}  // namespace

Result<Done> DeviceDirectory::load() {
  machine_id_ = machine_id_in(machine_id_file_);
  std::error_code error;
  if (!std::filesystem::exists(path(), error) && !error) return Done{};
  const Result<std::string> text = read_whole(path());
  readable_ = static_cast<bool>(text);
  if (!text) return text.error();
  try {
    Content content = parse(*text);
    if (machine_id_.empty()) machine_id_ = content.machine_id;
    foreign_ = !content.machine_id.empty() && content.machine_id != machine_id_;
    if (foreign_) return Error(path() + ": its machine_id is not the one in " + machine_id_file_);
    devices_ = std::move(content.devices);
    for (const auto& [uuid, device] : devices_) taken_.insert(device.index);
    return Done{};
  } catch (const std::exception& problem) {
    std::error_code ignored;
    std::filesystem::rename(path(), path() + ".bad", ignored);
    return Error(path() + ": " + problem.what() +
                 "; the file was renamed to devices.json.bad, indexes start from 0");
  }
}

Result<Done> DeviceDirectory::save() const {
  json list = json::array();
  for (const auto& [uuid, device] : devices_) list.push_back(to_json(device));
  std::error_code ignored;
  std::filesystem::create_directories(folder_, ignored);
  json document = {{"devices", list}};
  if (!machine_id_.empty()) document["machine_id"] = machine_id_;
  const std::string text = document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  if (Result<Done> written = write_durably(folder_, path() + ".new", text); !written) return written;
  if (std::rename((path() + ".new").c_str(), path().c_str()) != 0) return system_error(path());
  return sync_folder(folder_);
}

}  // namespace gpumeter
