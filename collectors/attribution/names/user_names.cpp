#include "collectors/attribution/names/user_names.hpp"

#include <errno.h>
#include <pwd.h>

#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace gpumeter::jobs {
namespace {

/// Names are looked up again after this time: a user may be renamed, or created after its first process was
/// seen.
constexpr auto kFresh = std::chrono::minutes(10);
/// More users than send on one machine. The limit matters if a process can take any uid.
constexpr std::size_t kMostNames = 4096;

}  // namespace

struct UserNames::State {
  struct Entry {
    std::optional<std::string> name;
    Nanoseconds known_at{};
    bool answered = false;
    bool asked = false;  ///< queued for the thread, or being looked up
  };

  explicit State(Lookup how) : lookup(std::move(how)) {}

  const Lookup lookup;
  const SystemClock clock;
  Mutex mutex;
  Condition changed;
  std::map<std::uint32_t, Entry> entries GPUMETER_GUARDED_BY(mutex);
  std::deque<std::uint32_t> wanted GPUMETER_GUARDED_BY(mutex);
  bool is_looking GPUMETER_GUARDED_BY(mutex) = false;
  bool started GPUMETER_GUARDED_BY(mutex) = false;

  Entry& entry_of(std::uint32_t uid) GPUMETER_REQUIRES(mutex) {
    if (entries.size() >= kMostNames && !entries.contains(uid)) {
      entries.clear();
      wanted.clear();
    }
    return entries[uid];
  }

  std::optional<std::uint32_t> take_wanted() GPUMETER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    if (wanted.empty()) return std::nullopt;
    const std::uint32_t uid = wanted.front();
    wanted.pop_front();
    is_looking = true;
    return uid;
  }

  /// One turn of the thread: a single lookup, so that the worker measures each lookup's duration.
  Nanoseconds look_up_one() GPUMETER_EXCLUDES(mutex) {
    const std::optional<std::uint32_t> uid = take_wanted();
    if (!uid) return Worker::kForever;
    std::optional<std::string> name = lookup(*uid);
    const MutexLock lock(mutex);
    entries[*uid] = {std::move(name), clock.monotonic(), true, false};
    is_looking = false;
    changed.notify_all();
    return Nanoseconds{0};
  }
};

UserNames::UserNames(Lookup lookup)
    : state_(std::make_shared<State>(std::move(lookup))), worker_(state_->clock) {}

UserNames::~UserNames() = default;

bool UserNames::hangs() const {
  const MutexLock lock(state_->mutex);
  return state_->is_looking;
}

std::string UserNames::of(std::uint32_t uid) {
  State& state = *state_;
  const Nanoseconds begun = state.clock.monotonic();
  const MutexLock lock(state.mutex);
  if (!state.started) {
    state.started =
        static_cast<bool>(worker_.start("user-names", [own = state_] { return own->look_up_one(); }));
  }
  if (!state.started) return std::to_string(uid);  // pids.max is reached; the next call tries again
  State::Entry* entry = &state.entry_of(uid);
  const bool is_fresh = entry->answered && begun - entry->known_at < kFresh;
  if (!is_fresh && !std::exchange(entry->asked, true)) {
    state.wanted.push_back(uid);
    worker_.wake();
  }
  while (!entry->answered && !worker_.is_busy_for(kPatience) && state.clock.monotonic() < begun + kPatience) {
    state.changed.wait_for(state.mutex, std::chrono::milliseconds(10));
    entry = &state.entry_of(uid);  // another thread's call may have cleared the table
  }
  return entry->name.value_or(std::to_string(uid));
}

std::optional<std::string> UserNames::from_system(std::uint32_t uid) {
  std::vector<char> buffer(1024);
  constexpr std::size_t kLongest = std::size_t{1} << 20;  // limit for an entry; directories have long ones
  passwd entry{};
  passwd* found = nullptr;
  while (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == ERANGE &&
         buffer.size() < kLongest) {
    buffer.resize(buffer.size() * 4);
  }
  if (found == nullptr) return std::nullopt;
  return std::string(found->pw_name);
}

}  // namespace gpumeter::jobs
