#include "daemon/fleet/index_keeper.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace gpumeter {
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
