#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/worker.hpp"

namespace gpumeter {

/// The uid of a user, by getpwnam_r(3); nullopt: there is no such user. Returns an Error if the name service
/// does not answer. May hang for ever.
Result<std::optional<std::uint32_t>> uid_of_user(const std::string& name);

/// The subordinate uids of subuid(5): which user owns a uid that exists only in user namespaces. Constant,
/// any thread.
class SubordinateUids {
 public:
  using UidOf = std::function<std::optional<std::uint32_t>(std::string_view name)>;

  SubordinateUids() = default;
  /// `text`: lines OWNER:FIRST:COUNT. Lines with another form, an unknown owner or the uid 0 are skipped, and
  /// lines after kMostRanges. If ranges overlap, the one with the higher start applies.
  SubordinateUids(std::string_view text, const UidOf& uid_of);

  /// Returns the owner of the uid; the uid itself if it is in no range.
  std::uint32_t owner_of(std::uint32_t uid) const noexcept;

  static constexpr std::size_t kMostRanges = 65'536;

 private:
  struct Range {
    std::uint64_t first;
    std::uint64_t end;
    std::uint32_t owner;
  };
  std::vector<Range> ranges_;  ///< by `first`
};

/// Follows the file of subordinate uids. A separate thread reads it once a minute, because the lookup of an
/// owner's name may hang. Ranges that only a directory service knows (`subid:` in nsswitch.conf) are not
/// seen. start() and the destructor: one thread; the rest: any thread.
class UserOwners {
 public:
  /// `file` may be missing. `uid_of` may hang for ever and may be called after this object's destruction.
  explicit UserOwners(std::string file, SubordinateUids::UidOf uid_of = from_system);
  UserOwners(const UserOwners&) = delete;
  UserOwners& operator=(const UserOwners&) = delete;

  /// Starts the thread if it is not running. Without a thread each uid is its own owner.
  void start();
  /// Waits for the first read, `at_most` this long.
  void wait(Nanoseconds at_most) const;
  /// Never nullptr.
  std::shared_ptr<const SubordinateUids> now() const;
  std::uint32_t owner_of(std::uint32_t uid) const { return now()->owner_of(uid); }
  /// uid_of_user() without the reason.
  static std::optional<std::uint32_t> from_system(std::string_view name);
  /// True while a lookup hangs in the C library: the process must then end by _exit().
  bool hangs() const { return worker_.busy_since().has_value(); }

 private:
  struct State;

  const SystemClock clock_;
  bool is_started_ = false;
  const std::shared_ptr<State> state_;  ///< shared with the thread, which may outlive this object
  Worker worker_{clock_};
};

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
