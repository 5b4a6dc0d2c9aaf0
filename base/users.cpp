#include "base/users.hpp"

#include <errno.h>
#include <pwd.h>

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "base/proc.hpp"
#include "base/text.hpp"

namespace gpumeter {
namespace {

/// useradd(8) appends a line; containers of a new user start later than that.
constexpr Nanoseconds kEvery = std::chrono::minutes(1);

/// Bytes of the file that are read: those of kMostRanges lines.
constexpr std::size_t kMostBytes = std::size_t{4} << 20U;

}  // namespace

// The call returns 0 without an entry only if the name service reports that the user does not exist. If a
// directory is down, it returns an error number.
Result<std::optional<std::uint32_t>> uid_of_user(const std::string& name) {
  constexpr std::size_t kLongest = std::size_t{1} << 20;  // limit for an entry; directories have long ones
  std::vector<char> buffer(1024);
  passwd entry{};
  passwd* found = nullptr;
  int error = 0;
  while ((error = getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found)) == ERANGE &&
         buffer.size() < kLongest) {
    buffer.resize(buffer.size() * 4);
  }
  if (found != nullptr) return std::optional(found->pw_uid);
  if (error != 0) return Error(std::generic_category().message(error));
  return std::optional<std::uint32_t>();
}

SubordinateUids::SubordinateUids(std::string_view text, const UidOf& uid_of) {
  std::map<std::string, std::optional<std::uint32_t>, std::less<>> known;  // one lookup for each owner
  while (!text.empty() && ranges_.size() < kMostRanges) {
    std::string_view line = trimmed(take_until(text, '\n'));
    const std::string name(take_until(line, ':'));
    const auto first = parse_number<std::uint32_t>(take_until(line, ':'));
    const auto count = parse_number<std::uint32_t>(line);
    if (name.empty() || !first || !count || *first == 0) continue;
    const auto [found, is_new] = known.try_emplace(name, parse_number<std::uint32_t>(name));
    if (is_new && !found->second) found->second = uid_of(name);
    if (!found->second) continue;
    ranges_.push_back({*first, std::uint64_t{*first} + *count, *found->second});
  }
  std::ranges::stable_sort(ranges_, {}, &Range::first);
}

std::uint32_t SubordinateUids::owner_of(std::uint32_t uid) const noexcept {
  const auto after = std::ranges::upper_bound(ranges_, std::uint64_t{uid}, {}, &Range::first);
  if (after == ranges_.begin()) return uid;
  const Range& range = *std::prev(after);
  return uid < range.end ? range.owner : uid;
}

struct UserOwners::State {
  State(std::string path, SubordinateUids::UidOf how) : file(std::move(path)), uid_of(std::move(how)) {}

  const std::string file;
  const SubordinateUids::UidOf uid_of;
  Mutex mutex;
  Condition changed;
  std::shared_ptr<const SubordinateUids> uids GPUMETER_GUARDED_BY(mutex) =
      std::make_shared<const SubordinateUids>();
  bool is_read GPUMETER_GUARDED_BY(mutex) = false;
  std::string text;  ///< at the last read; used by the thread only

  void read() {
    std::string next = read_small_file(file, kMostBytes).text;
    const bool is_same = next == text;
    auto parsed = is_same ? nullptr : std::make_shared<const SubordinateUids>(next, uid_of);
    text = std::move(next);
    const MutexLock lock(mutex);
    if (parsed) uids = std::move(parsed);
    is_read = true;
    changed.notify_all();
  }
};

UserOwners::UserOwners(std::string file, SubordinateUids::UidOf uid_of)
    : state_(std::make_shared<State>(std::move(file), std::move(uid_of))) {}

void UserOwners::start() {
  if (is_started_) return;
  is_started_ = static_cast<bool>(worker_.start("subuids", [state = state_] {
    state->read();
    return kEvery;
  }));
}

void UserOwners::wait(Nanoseconds at_most) const {
  const Nanoseconds deadline = clock_.monotonic() + at_most;
  const MutexLock lock(state_->mutex);
  while (!state_->is_read && clock_.monotonic() < deadline) {
    state_->changed.wait_for(state_->mutex, std::chrono::milliseconds(10));
  }
}

std::shared_ptr<const SubordinateUids> UserOwners::now() const {
  const MutexLock lock(state_->mutex);
  return state_->uids;
}

std::optional<std::uint32_t> UserOwners::from_system(std::string_view name) {
  const auto uid = uid_of_user(std::string(name));
  return uid ? *uid : std::nullopt;
}

}  // namespace gpumeter
