#include "collectors/attribution/names/user_names.hpp"

#include <errno.h>
#include <pthread.h>
#include <pwd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.hpp"

namespace gpumeter::jobs {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// A user may be renamed, or be made after its first process was seen.
constexpr auto kFresh = std::chrono::minutes(10);
/// More users than send on one machine; a process that can take any uid cannot make it grow beyond.
constexpr std::size_t kMostNames = 4096;

}  // namespace

struct UserNames::State {
  struct Entry {
    std::optional<std::string> name;
    SteadyClock::time_point known_at;  ///< or asked for the last time
    bool answered = false;
    bool asked = false;  ///< waits for the thread, or is being looked up
  };

  explicit State(Lookup how) : lookup(std::move(how)) {}

  const Lookup lookup;
  mutable Mutex mutex;
  Condition changed;
  std::map<std::uint32_t, Entry> entries GPUMETER_GUARDED_BY(mutex);
  std::deque<std::uint32_t> wanted GPUMETER_GUARDED_BY(mutex);
  std::optional<SteadyClock::time_point> busy_since GPUMETER_GUARDED_BY(mutex);
  bool started GPUMETER_GUARDED_BY(mutex) = false;
  bool stop GPUMETER_GUARDED_BY(mutex) = false;

  bool is_stuck() const GPUMETER_REQUIRES(mutex) {
    return busy_since && SteadyClock::now() - *busy_since >= kPatience;
  }
  /// False: the kernel gives no thread now (pids.max); the next question asks again.
  bool start(const std::shared_ptr<State>& self) GPUMETER_REQUIRES(mutex) try {
    if (!started) std::thread([self] { run(self); }).detach();
    started = true;
    return true;
  } catch (const std::system_error&) {
    return false;
  }
  void ask(std::uint32_t uid, Entry& entry) GPUMETER_REQUIRES(mutex) {
    if (std::exchange(entry.asked, true)) return;
    wanted.push_back(uid);
    changed.notify_all();
  }
  Entry& entry_of(std::uint32_t uid) GPUMETER_REQUIRES(mutex) {
    if (entries.size() >= kMostNames && !entries.contains(uid)) {
      entries.clear();
      wanted.clear();
    }
    return entries[uid];
  }
};

UserNames::UserNames(Lookup lookup) : state_(std::make_shared<State>(std::move(lookup))) {}

UserNames::~UserNames() {
  const MutexLock lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
}

std::string UserNames::of(std::uint32_t uid) {
  State& state = *state_;
  const auto until = SteadyClock::now() + kPatience;
  const MutexLock lock(state.mutex);
  if (!state.start(state_)) return std::to_string(uid);
  State::Entry* entry = &state.entry_of(uid);
  const bool stale = entry->answered && SteadyClock::now() - entry->known_at >= kFresh;
  if (!entry->answered || stale) state.ask(uid, *entry);
  while (!entry->answered && !state.is_stuck() && SteadyClock::now() < until) {
    state.changed.wait_for(state.mutex, std::chrono::milliseconds(10));
    entry = &state.entry_of(uid);  // another's question may have emptied the table
  }
  return entry->name.value_or(std::to_string(uid));
}

bool UserNames::hangs() const {
  const MutexLock lock(state_->mutex);
  return state_->busy_since.has_value();
}

void UserNames::run(const std::shared_ptr<State>& state) noexcept try {
  pthread_setname_np(pthread_self(), "user-names");
  while (true) {
    std::uint32_t uid = 0;
    {
      const MutexLock lock(state->mutex);
      while (!state->stop && state->wanted.empty()) state->changed.wait_for(state->mutex, kFresh);
      if (state->stop) return;
      uid = state->wanted.front();
      state->wanted.pop_front();
      state->busy_since = SteadyClock::now();
    }
    std::optional<std::string> name = state->lookup(uid);
    const MutexLock lock(state->mutex);
    state->busy_since.reset();
    state->entries[uid] = {std::move(name), SteadyClock::now(), true, false};
    state->changed.notify_all();
  }
} catch (...) {  // out of memory: users have numbers from now on
}

std::optional<std::string> UserNames::from_system(std::uint32_t uid) {
  std::vector<char> buffer(1024);
  constexpr std::size_t kLongest = std::size_t{1} << 20;  // of an entry; directories have long ones
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
