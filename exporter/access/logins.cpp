#include "exporter/access/logins.hpp"

#include <string.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "exporter/access/bcrypt.hpp"

namespace gpumeter {
namespace {

struct Waiter {
  void* request;
  void (*resume)(void*) noexcept;
};

/// One check and the requests that wait for it.
struct Check {
  LoginKey key{};
  Credentials credentials;
  std::string hash;
  bool is_user = false;  ///< false: compared with the dummy hash, and bad in any case
  /// The user exists and no good password is known. Others are surely bad; they are checked all the same, so
  /// that the time of an answer does not tell which users exist, but only when nothing else waits.
  bool may_be_good = false;
  std::vector<Waiter> waiters;
};

/// The hash of the user, or one that takes as long as the most costly user's.
std::string hash_for(const std::map<std::string, std::string>& users, const std::string& user) {
  if (const auto found = users.find(user); found != users.end()) return found->second;
  unsigned most = 0;
  for (const auto& [name, hash] : users) most = std::max(most, bcrypt_cost(hash) ? *bcrypt_cost(hash) : 0);
  constexpr unsigned kUsualCost = 10;
  return dummy_bcrypt_hash(most == 0 ? kUsualCost : most);
}

}  // namespace

struct Logins::State {
  Mutex mutex;
  LoginCache cache GPUMETER_GUARDED_BY(mutex);
  std::deque<Check> waiting GPUMETER_GUARDED_BY(mutex);
  std::optional<Check> running GPUMETER_GUARDED_BY(mutex);       ///< without the password
  std::map<void*, Verdict> verdicts GPUMETER_GUARDED_BY(mutex);  ///< of resumed requests
  bool is_closed GPUMETER_GUARDED_BY(mutex) = false;

  // A request is paused until it is resumed here, under the mutex, so it exists. Resuming sets a flag and
  // wakes a thread; it does not block.
  void answer(const std::vector<Waiter>& waiters, Verdict verdict) GPUMETER_REQUIRES(mutex) {
    for (const Waiter& waiter : waiters) {
      verdicts[waiter.request] = verdict;
      waiter.resume(waiter.request);
    }
  }

  void release_from(Check& check, void* request) GPUMETER_REQUIRES(mutex) {
    const auto waiter = std::ranges::find(check.waiters, request, &Waiter::request);
    if (waiter == check.waiters.end()) return;
    const Waiter released = *waiter;
    check.waiters.erase(waiter);
    answer({released}, Verdict::too_many);
  }

  Check* find(const LoginKey& key) GPUMETER_REQUIRES(mutex) {
    if (running && running->key == key) return &*running;
    const auto found = std::ranges::find(waiting, key, &Check::key);
    return found == waiting.end() ? nullptr : &*found;
  }

  /// Makes room in the queue for a check, at the cost of the last one that is surely bad.
  bool make_room(bool may_be_good) GPUMETER_REQUIRES(mutex) {
    if (waiting.size() < kMostWaiting) return true;
    const auto last =
        std::find_if(waiting.rbegin(), waiting.rend(), [](const Check& c) { return !c.may_be_good; });
    if (!may_be_good || last == waiting.rend()) return false;
    answer(last->waiters, Verdict::too_many);
    waiting.erase(std::next(last).base());
    return true;
  }

  /// Removes the next check from the queue and returns its password, hash and user.
  std::optional<Check> take() GPUMETER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    if (waiting.empty()) return std::nullopt;
    auto next = std::ranges::find_if(waiting, &Check::may_be_good);
    if (next == waiting.end()) next = waiting.begin();
    running = std::move(*next);
    waiting.erase(next);
    Check check;
    check.credentials = std::move(running->credentials);
    running->credentials = {check.credentials.user, {}};
    check.hash = running->hash;
    check.is_user = running->is_user;
    return check;
  }

  /// nullopt: memory is short, so that the result is unknown.
  void finish(std::optional<bool> is_good) GPUMETER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    if (is_good) cache.keep(running->credentials.user, running->hash, running->key, *is_good);
    answer(running->waiters, !is_good ? Verdict::too_many : *is_good ? Verdict::good : Verdict::bad);
    running.reset();
  }

  /// One turn of the thread.
  void run() GPUMETER_EXCLUDES(mutex) {
    while (std::optional<Check> check = take()) {
      const std::optional<bool> matches = bcrypt_matches(check->credentials.password, check->hash);
      explicit_bzero(check->credentials.password.data(), check->credentials.password.size());
      finish(matches ? std::optional(*matches && check->is_user) : std::nullopt);
    }
  }
};

Logins::Logins(const Clock& clock) : state_(std::make_shared<State>()), worker_(clock) {}

Logins::~Logins() { close(); }

Result<Done> Logins::start() {
  return worker_.start("web-users", [state = state_] {
    state->run();
    return Worker::kForever;
  });
}

void Logins::close() {
  const MutexLock lock(state_->mutex);
  state_->is_closed = true;
  for (const Check& check : state_->waiting) state_->answer(check.waiters, Verdict::too_many);
  state_->waiting.clear();
  if (!state_->running) return;
  state_->answer(state_->running->waiters, Verdict::too_many);
  state_->running->waiters.clear();
}

bool Logins::stop(Nanoseconds deadline) { return worker_.stop(deadline); }

Logins::Verdict Logins::check(const std::map<std::string, std::string>& users, const Credentials& credentials,
                              void* request, const Pausing& pausing) {
  const std::string hash = hash_for(users, credentials.user);
  State& state = *state_;
  const MutexLock lock(state.mutex);
  if (const auto verdict = state.verdicts.extract(request)) return verdict.mapped();
  const LoginKey key = state.cache.key(credentials, hash);
  if (const auto known = state.cache.find(credentials.user, key))
    return *known ? Verdict::good : Verdict::bad;
  if (state.is_closed) return Verdict::too_many;
  Check* check = state.find(key);
  if (check == nullptr) {
    const bool is_user = users.contains(credentials.user);
    const bool may_be_good = is_user && !state.cache.knows(credentials.user, hash);
    if (!state.make_room(may_be_good)) return Verdict::too_many;
    check = &state.waiting.emplace_back(Check{key, credentials, hash, is_user, may_be_good, {}});
    worker_.wake();
  }
  check->waiters.push_back({request, pausing.resume});
  pausing.pause(request);
  return Verdict::waits;
}

void Logins::release(void* request) {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  for (Check& check : state.waiting) state.release_from(check, request);
  if (state.running) state.release_from(*state.running, request);
  std::erase_if(state.waiting, [](const Check& check) { return check.waiters.empty(); });
}

void Logins::forget(void* request) {
  const MutexLock lock(state_->mutex);
  state_->verdicts.erase(request);
}

void Logins::retain(const std::map<std::string, std::string>& users) {
  const MutexLock lock(state_->mutex);
  state_->cache.retain(users);
}

}  // namespace gpumeter
