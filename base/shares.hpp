#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace gpumeter {

/// Who pays for what a process with this uid takes: the owner of the subordinate uid, so that a user
/// namespace is no crowd. Containers whose uids belong to root (LXD) pay by the range of their namespace,
/// because otherwise they would take root's places.
constexpr std::uint32_t payer_of(std::uint32_t uid, std::uint32_t owner) noexcept {
  constexpr std::uint32_t kRange = 65'536;
  return owner == 0 ? uid - uid % kRange : owner;
}

/// Who holds how many of a limited number of places. The key is who pays: an owner of processes (payer_of) or
/// an address (Peer). Neither the order of arrival nor the number of uids keeps a newcomer out.
template <class Key>
class Shares {
 public:
  std::size_t of(const Key& key) const {
    const auto found = held_.find(key);
    return found == held_.end() ? 0 : found->second;
  }
  void add(const Key& key) { ++held_[key]; }
  void remove(const Key& key) {
    const auto found = held_.find(key);
    if (found != held_.end() && --found->second == 0) held_.erase(found);
  }
  /// Who gives up a place for the newcomer if all are taken: the one with the most, if it then still has as
  /// many as the newcomer, or if the newcomer has none. Empty: the newcomer is refused.
  std::optional<Key> yields_to(const Key& newcomer) const {
    const auto most = std::ranges::max_element(held_, {}, [](const auto& entry) { return entry.second; });
    const std::size_t own = of(newcomer);
    if (most == held_.end() || (own > 0 && most->second < own + 2)) return std::nullopt;
    return most->first;
  }

 private:
  std::map<Key, std::size_t> held_;
};

}  // namespace gpumeter
