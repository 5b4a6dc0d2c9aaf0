#include "daemon/fleet/device_directory.hpp"

#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "base/folder.hpp"
#include "daemon/fleet/state_keeper.hpp"
#include "daemon/state/figures_file.hpp"

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

std::string checksum_of(const json& list) {
  return gpumeter::checksum_of(list.dump(-1, ' ', false, json::error_handler_t::replace));
}

/// Throws on wrong content, like nlohmann.
Content parse(const std::string& text) {
  Content content;
  Devices& devices = content.devices;
  Owners owners;
  const json document = json::parse(std::string_view(text));  // as the other users of the library
  if (document.contains("machine_id")) content.machine_id = document.at("machine_id").get<std::string>();
  const json& list = document.at("devices");
  if (!list.is_array()) throw std::runtime_error("devices must be a list");
  // Files of older versions lack this key. A changed uuid would be a GPU that is missing for ever.
  if (document.contains("checksum") && document.at("checksum").get<std::string>() != checksum_of(list)) {
    throw std::runtime_error("the list of devices was changed: its checksum does not match");
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    try {
      add(list[i], devices, owners);
    } catch (const std::exception& problem) {
      throw std::runtime_error("devices[" + std::to_string(i) + "]: " + problem.what());
    }
  }
  return content;
}

}  // namespace

// The lock is on the folder itself. A lock file that root created could not be opened by the service's user.
Result<FolderLock> FolderLock::take(const std::string& folder) {
  const Result<Folder> found = Folder::open(folder);
  if (!found) return found.error();
  Result<Descriptor> opened = found->reopen();
  if (!opened) return opened.error();
  if (flock(opened->number(), LOCK_EX | LOCK_NB) == 0) {
    return FolderLock(*std::move(opened), Holder::this_process);
  }
  const Holder holder = errno == EWOULDBLOCK ? Holder::other_process : Holder::unknown;
  return FolderLock(*std::move(opened), holder);
}

KnownDevice& DeviceDirectory::admit(const std::string& collector, const DeviceInfo& info, unsigned preferred,
                                    Nanoseconds now) {
  const auto [found, is_new] = devices_.try_emplace(info.uuid);
  KnownDevice& device = found->second;
  if (is_new) taken_.insert(device.index = free_index(preferred));
  device.collector = collector;
  device.info = info;
  device.last_seen = now;
  return device;
}

std::vector<std::string> DeviceDirectory::missing_for(const PresenceOf& presence, Nanoseconds step,
                                                      Nanoseconds at_most) {
  std::vector<std::string> due;
  for (auto& [uuid, known] : devices_) {
    const Presence now = presence(known);
    if (now == Presence::missing) known.missing += step;
    if (now == Presence::there) known.missing = Nanoseconds{0};
    if (now == Presence::missing && known.missing >= at_most) due.push_back(uuid);
  }
  return due;
}

bool DeviceDirectory::forget(const std::string& uuid) {
  const auto device = devices_.find(uuid);
  if (device == devices_.end()) return false;
  taken_.erase(device->second.index);
  devices_.erase(device);
  return true;
}

KnownDevice* DeviceDirectory::find(const std::string& uuid) {
  const auto device = devices_.find(uuid);
  return device == devices_.end() ? nullptr : &device->second;
}

const KnownDevice* DeviceDirectory::find(const std::string& uuid) const {
  const auto device = devices_.find(uuid);
  return device == devices_.end() ? nullptr : &device->second;
}

unsigned DeviceDirectory::free_index(unsigned preferred) const {
  if (!taken_.contains(preferred)) return preferred;
  if (const unsigned next = *taken_.rbegin() + 1; next <= kHighestIndex) return next;
  unsigned lowest = 0;
  while (taken_.contains(lowest)) ++lowest;
  return lowest;
}

Result<Done> DeviceDirectory::load() {
  machine_id_ = machine_id_in(machine_id_file_);
  std::error_code error;
  if (!std::filesystem::exists(path(), error) && !error) return Done{};
  const Result<std::string> text = read_state_file(path(), kMostBytes);
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
    set_aside(path());
    return Error(path() + ": " + problem.what() +
                 "; the file was renamed to devices.json.bad, indexes start from 0");
  }
}

Result<Done> DeviceDirectory::save() const {
  json list = json::array();
  for (const auto& [uuid, device] : devices_) list.push_back(to_json(device));
  json document = {{"devices", list}, {"checksum", checksum_of(list)}};
  if (!machine_id_.empty()) document["machine_id"] = machine_id_;
  const std::string text = document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  return replace_state_file(folder_, "devices.json", text);
}

namespace {

// The interval for last_seen and the missing time: a crash loses at most this much of both.
constexpr auto kSaveEvery = std::chrono::minutes(1);

// Ticks are 0.1 s apart. A longer gap means that the process was stopped and no discovery ran.
constexpr auto kLongestStep = std::chrono::seconds(10);

bool comes_first(const IndexKeeper::Find& a, const IndexKeeper::Find& b) {
  const auto key = [](const DeviceInfo& info) {
    return std::pair(info.pci_address.empty(), std::string_view(info.pci_address));
  };
  return key(a.info) < key(b.info);
}

}  // namespace

void IndexKeeper::order_by(const std::vector<std::string>& bus) {
  if (std::exchange(is_ordered_, true)) return;
  for (const std::string& address : bus) places_.emplace(address, places_.size());
}

std::vector<IndexKeeper::Find> IndexKeeper::take_found() {
  std::vector<Find> finds = std::exchange(found_, {});
  std::stable_sort(finds.begin(), finds.end(), comes_first);
  auto after_bus = static_cast<unsigned>(places_.size());
  for (Find& find : finds) {
    const auto place = places_.find(find.info.pci_address);
    find.preferred = place != places_.end() ? place->second : after_bus;
    ++after_bus;
  }
  return finds;
}

IndexKeeper::Admission IndexKeeper::admit(const Find& find) {
  const KnownDevice* old = directory_.find(find.info.uuid);
  const bool is_changed = old == nullptr || !(old->info == find.info);
  is_changed_ = is_changed_ || is_changed;
  return {directory_.admit(find.collector, find.info, find.preferred, clock_.realtime()), is_changed};
}

void IndexKeeper::seen(const std::string& uuid) {
  if (KnownDevice* device = directory_.find(uuid)) device->last_seen = clock_.realtime();
}

std::vector<std::string> IndexKeeper::missing_for(const DeviceDirectory::PresenceOf& presence,
                                                  Nanoseconds at_most) {
  const Nanoseconds now = clock_.monotonic();
  const Nanoseconds step = std::min<Nanoseconds>(now - looked_at_.value_or(now), kLongestStep);
  looked_at_ = now;
  return directory_.missing_for(presence, step, at_most);
}

bool IndexKeeper::forget(const std::string& uuid) {
  const bool is_forgotten = directory_.forget(uuid);
  is_changed_ = is_changed_ || is_forgotten;
  return is_forgotten;
}

void IndexKeeper::save_if_due(bool is_settled) {
  const Nanoseconds now = clock_.monotonic();
  const bool is_due = is_settled && now >= saved_at_ + kSaveEvery;
  if (!keeper_ || (!is_due && !is_changed_)) return;
  keeper_->save(directory_);
  is_changed_ = false;
  saved_at_ = now;
}

}  // namespace gpumeter
