#include "collectors/attribution/names/known_users.hpp"

#include <errno.h>
#include <pwd.h>

#include <cstddef>
#include <utility>

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

// The call returns 0 without an entry only if the name service reports that the user does not exist. If a
// directory is down, it returns an error number.
KnownUsers::Entry KnownUsers::from_system(const std::string& name) {
  constexpr std::size_t kLongest = std::size_t{1} << 20;  // limit for an entry; directories have long ones
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
