#include "collectors/attribution/names/known_users.hpp"

#include <errno.h>
#include <pwd.h>

#include <cstddef>
#include <utility>

#include "base/mutex.hpp"
#include "base/worker.hpp"

namespace gpumeter::jobs {

struct KnownUsers::State {
  mutable Mutex mutex;
  std::map<std::string, Entry> entries GPUMETER_GUARDED_BY(mutex);
  bool asking GPUMETER_GUARDED_BY(mutex) = false;
};

KnownUsers::KnownUsers(const Clock& clock, Lookup lookup)
    : clock_(clock), lookup_(std::move(lookup)), state_(std::make_shared<State>()) {}

std::map<std::string, KnownUsers::Entry> KnownUsers::of(const std::vector<std::string>& names) {
  std::map<std::string, Entry> unanswered;
  for (const std::string& name : names) unanswered[name] = {};
  {
    const MutexLock lock(state_->mutex);
    if (names.empty() || state_->asking) return unanswered;
    state_->asking = true;
    state_->entries = std::move(unanswered);
  }
  Worker worker(clock_);
  const Result<Done> started = worker.start("known-users", [state = state_, lookup = lookup_, names] {
    for (const std::string& name : names) {
      const Entry entry = lookup(name);
      const MutexLock lock(state->mutex);
      state->entries[name] = entry;
    }
    const MutexLock lock(state->mutex);
    state->asking = false;
    return std::nullopt;
  });
  worker.join(clock_.monotonic() + kPatience);
  const MutexLock lock(state_->mutex);
  state_->asking = state_->asking && started;
  return state_->entries;
}

bool KnownUsers::hangs() const {
  const MutexLock lock(state_->mutex);
  return state_->asking;
}

// 0 without an entry is the one answer that denies the user; a directory that is down gives an error number.
KnownUsers::Entry KnownUsers::from_system(const std::string& name) {
  constexpr std::size_t kLongest = std::size_t{1} << 20;  // of an entry; directories have long ones
  std::vector<char> buffer(1024);
  passwd entry{};
  passwd* found = nullptr;
  int error = 0;
  while ((error = getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found)) == ERANGE &&
         buffer.size() < kLongest) {
    buffer.resize(buffer.size() * 4);
  }
  if (found != nullptr) return {Status::known, found->pw_uid};
  return {error == 0 ? Status::unknown : Status::no_answer, 0};
}

}  // namespace gpumeter::jobs
