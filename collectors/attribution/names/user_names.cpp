#include "collectors/attribution/names/user_names.hpp"

#include <errno.h>
#include <pwd.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/users.hpp"

namespace gpumeter::jobs {
namespace {

/// Names are looked up again after this time: a user may be renamed, or created after its first process was
/// seen.
constexpr auto kFresh = std::chrono::minutes(10);
/// More users than send on one machine. The limit matters if a process can take any uid.
constexpr std::size_t kMostNames = 4096;
/// Lookups that wait. Who finds no place gets the digits and asks again with the next message.
constexpr std::size_t kMostWanted = 64;

}  // namespace

struct UserNames::State {
  struct Entry {
    std::optional<std::string> name;
    Nanoseconds known_at{};
    bool answered = false;
    bool asked = false;      ///< queued for the thread, or being looked up
    unsigned questions = 0;  ///< since the last answer
  };

  explicit State(Lookup how) : lookup(std::move(how)) {}

  const Lookup lookup;
  const SystemClock clock;
  Mutex mutex;
  Condition changed;
  std::map<std::uint32_t, Entry> entries GPUMETER_GUARDED_BY(mutex);
  std::vector<std::uint32_t> wanted GPUMETER_GUARDED_BY(mutex);
  Nanoseconds patience GPUMETER_GUARDED_BY(mutex){kPatience};  ///< of soon(), at `measured`
  Nanoseconds measured GPUMETER_GUARDED_BY(mutex){};
  bool is_looking GPUMETER_GUARDED_BY(mutex) = false;
  bool started GPUMETER_GUARDED_BY(mutex) = false;

  /// Null: too many wait.
  Entry* entry_of(std::uint32_t uid) GPUMETER_REQUIRES(mutex) {
    const auto found = entries.find(uid);
    if (found != entries.end()) return &found->second;
    if (wanted.size() >= kMostWanted) return nullptr;
    if (entries.size() >= kMostNames) {
      std::erase_if(entries, [](const auto& entry) { return entry.second.answered && !entry.second.name; });
    }
    if (entries.size() >= kMostNames) {
      entries.clear();
      wanted.clear();
    }
    return &entries[uid];
  }

  void want(std::uint32_t uid, Entry& entry, Nanoseconds now) GPUMETER_REQUIRES(mutex) {
    ++entry.questions;
    const bool is_fresh = entry.answered && now - entry.known_at < kFresh;
    if (!is_fresh && !entry.asked && wanted.size() < kMostWanted) {
      entry.asked = true;
      wanted.push_back(uid);
    }
  }

  std::optional<std::uint32_t> take_wanted() GPUMETER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    if (wanted.empty()) return std::nullopt;
    unsigned most = 0;
    std::size_t chosen = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const unsigned questions = entries[wanted[i]].questions;
      if (questions > most) most = questions, chosen = i;
    }
    const std::uint32_t uid = wanted[chosen];
    wanted.erase(wanted.begin() + static_cast<std::ptrdiff_t>(chosen));
    is_looking = true;
    return uid;
  }

  /// One turn of the thread: a single lookup, so that the worker measures each lookup's duration.
  Nanoseconds look_up_one() GPUMETER_EXCLUDES(mutex) {
    const std::optional<std::uint32_t> uid = take_wanted();
    if (!uid) return Worker::kForever;
    std::optional<std::string> name = lookup(*uid);
    const MutexLock lock(mutex);
    entries[*uid] = {std::move(name), clock.monotonic(), true, false, 0};
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

std::string UserNames::of(std::uint32_t uid) { return of(uid, kPatience); }

std::string UserNames::soon(std::uint32_t uid) {
  constexpr int kPart = 50;
  State& state = *state_;
  const Nanoseconds begun = state.clock.monotonic();
  Nanoseconds patience{};
  {
    const MutexLock lock(state.mutex);
    const Nanoseconds earned = (begun - std::exchange(state.measured, begun)) / kPart;
    patience = state.patience = std::min<Nanoseconds>(kPatience, state.patience + earned);
  }
  std::string name = of(uid, patience);
  const Nanoseconds waited = state.clock.monotonic() - begun;
  const MutexLock lock(state.mutex);
  state.patience -= waited;
  return name;
}

std::string UserNames::of(std::uint32_t uid, Nanoseconds patience) {
  State& state = *state_;
  const Nanoseconds begun = state.clock.monotonic();
  const MutexLock lock(state.mutex);
  if (!state.started) {
    state.started =
        static_cast<bool>(worker_.start("user-names", [own = state_] { return own->look_up_one(); }));
  }
  if (!state.started) return std::to_string(uid);  // pids.max is reached; the next call tries again
  State::Entry* entry = state.entry_of(uid);
  if (entry == nullptr) return std::to_string(uid);
  state.want(uid, *entry, begun);
  if (entry->asked) worker_.wake();
  while (!entry->answered && entry->asked && !worker_.is_busy_for(kPatience) &&
         state.clock.monotonic() < begun + patience) {
    state.changed.wait_for(state.mutex, std::min<Nanoseconds>(std::chrono::milliseconds(10), patience));
    entry = state.entry_of(uid);  // another thread's call may have cleared the table
    if (entry == nullptr) return std::to_string(uid);
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

namespace {

struct Answers {
  Mutex mutex;
  std::map<std::string, KnownUsers::Entry> entries GPUMETER_GUARDED_BY(mutex);
};

}  // namespace

KnownUsers::KnownUsers(const Clock& clock, Lookup lookup) : clock_(clock), lookup_(std::move(lookup)) {}

std::map<std::string, KnownUsers::Entry> KnownUsers::of(const std::vector<std::string>& names) {
  const auto answers = std::make_shared<Answers>();
  {
    const MutexLock lock(answers->mutex);
    for (const std::string& name : names) answers->entries[name] = {};
  }
  if (!names.empty() && !hangs()) {
    worker_ = std::make_unique<Worker>(clock_);
    const auto look_up = [answers, lookup = lookup_, names]() -> std::optional<Nanoseconds> {
      for (const std::string& name : names) {
        const Entry entry = lookup(name);
        const MutexLock lock(answers->mutex);
        answers->entries[name] = entry;
      }
      return std::nullopt;
    };
    if (worker_->start("known-users", look_up)) worker_->join(clock_.monotonic() + kPatience);
  }
  const MutexLock lock(answers->mutex);
  return answers->entries;
}

KnownUsers::Entry KnownUsers::from_system(const std::string& name) {
  const auto uid = uid_of_user(name);
  if (!uid) return {Status::no_answer, 0};
  return *uid ? Entry{Status::known, **uid} : Entry{Status::unknown, 0};
}

}  // namespace gpumeter::jobs
