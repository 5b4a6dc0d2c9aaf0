#include "exporter/access/login_queue.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace gpumeter {
namespace {

std::uint64_t tag_of(const LoginKey& key) {
  std::uint64_t tag = 0;
  std::memcpy(&tag, key.data(), sizeof tag);
  return tag;
}

}  // namespace

void RefusedKeys::add(const LoginKey& key) {
  if (tags_.size() < kMost) {
    tags_.push_back(tag_of(key));
  } else {
    tags_[next_++ % kMost] = tag_of(key);
  }
}

bool RefusedKeys::contains(const LoginKey& key) const {
  return std::ranges::find(tags_, tag_of(key)) != tags_.end();
}

LoginCheck* LoginQueue::find(const LoginKey& key) {
  const auto found = std::ranges::find(checks_, key, &LoginCheck::key);
  return found == checks_.end() ? nullptr : &*found;
}

std::optional<LoginCheck> LoginQueue::displace(LoginRank rank) {
  const auto lowest = std::min_element(checks_.rbegin(), checks_.rend(),
                                       [](const auto& a, const auto& b) { return a.rank < b.rank; });
  if (lowest == checks_.rend() || lowest->rank >= rank) return std::nullopt;
  std::optional<LoginCheck> displaced = std::move(*lowest);
  checks_.erase(std::next(lowest).base());
  return displaced;
}

std::optional<LoginCheck> LoginQueue::take() {
  const auto first = std::ranges::max_element(checks_, {}, &LoginCheck::rank);
  if (first == checks_.end()) return std::nullopt;
  std::optional<LoginCheck> taken = std::move(*first);
  checks_.erase(first);
  return taken;
}

std::optional<LoginWaiter> LoginQueue::release(void* request) {
  for (auto check = checks_.begin(); check != checks_.end(); ++check) {
    const std::optional<LoginWaiter> released = release_from(*check, request);
    if (!released) continue;
    if (check->waiters.empty()) checks_.erase(check);
    return released;
  }
  return std::nullopt;
}

std::vector<LoginWaiter> LoginQueue::clear() {
  std::vector<LoginWaiter> waiters;
  for (const LoginCheck& check : checks_) {
    waiters.insert(waiters.end(), check.waiters.begin(), check.waiters.end());
  }
  checks_.clear();
  return waiters;
}

std::optional<LoginWaiter> release_from(LoginCheck& check, void* request) {
  const auto waiter = std::ranges::find(check.waiters, request, &LoginWaiter::request);
  if (waiter == check.waiters.end()) return std::nullopt;
  const LoginWaiter released = *waiter;
  check.waiters.erase(waiter);
  return released;
}

}  // namespace gpumeter
