#pragma once

#include <cstdint>
#include <functional>
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

}  // namespace gpumeter
