#include "collectors/attribution/names/known_users.hpp"

#include <utility>

#include "base/user_owners.hpp"

namespace gpumeter::jobs {
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
