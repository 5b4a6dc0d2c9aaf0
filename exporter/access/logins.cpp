#include "exporter/access/logins.hpp"

#include <string.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "exporter/access/bcrypt.hpp"
#include "exporter/access/login_queue.hpp"

namespace gpumeter {
namespace {

/// The hash of the user, or one that takes as long as the most costly user's.
std::string hash_for(const std::map<std::string, std::string>& users, const std::string& user) {
  if (const auto found = users.find(user); found != users.end()) return found->second;
  constexpr unsigned kLeast = 4;
  unsigned most = kLeast;
  for (const auto& [name, hash] : users) {
    const Result<unsigned> cost = bcrypt_cost(hash);
    if (cost) most = std::max(most, *cost);
  }
  return dummy_bcrypt_hash(most);
}

}  // namespace

struct Logins::State {
  Mutex mutex;
  LoginCache cache GPUMETER_GUARDED_BY(mutex);
  LoginQueue queue GPUMETER_GUARDED_BY(mutex);
  RefusedKeys refused GPUMETER_GUARDED_BY(mutex);
  std::optional<LoginCheck> running GPUMETER_GUARDED_BY(mutex);  ///< without the password
  std::map<void*, Verdict> verdicts GPUMETER_GUARDED_BY(mutex);  ///< of resumed requests
  bool is_closed GPUMETER_GUARDED_BY(mutex) = false;

  // A request is paused until it is resumed here, under the mutex, so it exists. Resuming sets a flag and
  // wakes a thread; it does not block.
  void answer(const std::vector<LoginWaiter>& waiters, Verdict verdict) GPUMETER_REQUIRES(mutex) {
    for (const LoginWaiter& waiter : waiters) {
      verdicts[waiter.request] = verdict;
      waiter.resume(waiter.request);
    }
  }

  LoginCheck* find(const LoginKey& key) GPUMETER_REQUIRES(mutex) {
    return running && running->key == key ? &*running : queue.find(key);
  }

  LoginRank rank_of(const LoginCheck& check) GPUMETER_REQUIRES(mutex) {
    if (!check.is_user || cache.knows(check.credentials.user, check.hash)) return LoginRank::surely_bad;
    return refused.contains(check.key) ? LoginRank::asked_again : LoginRank::may_be_good;
  }

  /// Returns null if the queue is full of checks that are not less likely.
  LoginCheck* add(LoginCheck check) GPUMETER_REQUIRES(mutex) {
    check.rank = rank_of(check);
    if (!queue.is_full()) return &queue.add(std::move(check));
    const std::optional<LoginCheck> displaced = queue.displace(check.peer, check.rank);
    refused.add(displaced ? displaced->key : check.key);
    if (!displaced) return nullptr;
    answer(displaced->waiters, Verdict::too_many);
    return &queue.add(std::move(check));
  }

  /// Starts the next check.
  std::optional<Credentials> take(std::string& hash) GPUMETER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    running = queue.take();
    if (!running) return std::nullopt;
    hash = running->hash;
    Credentials credentials = std::move(running->credentials);
    running->credentials = {credentials.user, {}};
    return credentials;
  }

  /// nullopt: memory is short, so that the result is unknown.
  void finish(std::optional<bool> matches) GPUMETER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    const bool is_good = matches.value_or(false) && running->is_user;
    if (matches) cache.keep(running->credentials.user, running->hash, running->key, is_good);
    answer(running->waiters, !matches ? Verdict::too_many : is_good ? Verdict::good : Verdict::bad);
    running.reset();
  }

  /// One turn of the thread.
  void run() GPUMETER_EXCLUDES(mutex) {
    std::string hash;
    while (std::optional<Credentials> credentials = take(hash)) {
      const std::optional<bool> matches = bcrypt_matches(credentials->password, hash);
      explicit_bzero(credentials->password.data(), credentials->password.size());
      finish(matches);
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
  state_->answer(state_->queue.clear(), Verdict::too_many);
  if (state_->running) state_->answer(std::exchange(state_->running->waiters, {}), Verdict::too_many);
}

bool Logins::stop(Nanoseconds deadline) { return worker_.stop(deadline); }

Logins::Verdict Logins::check(const std::map<std::string, std::string>& users, const Credentials& credentials,
                              const Asking& asking, const Pausing& pausing) {
  void* const request = asking.request;
  const std::string hash = hash_for(users, credentials.user);
  State& state = *state_;
  const MutexLock lock(state.mutex);
  if (const auto verdict = state.verdicts.extract(request)) return verdict.mapped();
  const LoginKey key = state.cache.key(credentials, hash);
  if (const auto known = state.cache.find(credentials.user, key))
    return *known ? Verdict::good : Verdict::bad;
  if (state.is_closed) return Verdict::too_many;
  LoginCheck* check = state.find(key);
  if (check == nullptr) {
    check = state.add({.key = key,
                       .credentials = credentials,
                       .hash = hash,
                       .peer = asking.peer,
                       .is_user = users.contains(credentials.user)});
    worker_.wake();
  }
  if (check == nullptr) return Verdict::too_many;
  check->waiters.push_back({request, pausing.resume});
  pausing.pause(request);
  return Verdict::waits;
}

void Logins::release(void* request) {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  std::optional<LoginWaiter> released = state.queue.release(request);
  if (!released && state.running) released = release_from(*state.running, request);
  if (released) state.answer({*released}, Verdict::too_many);
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
