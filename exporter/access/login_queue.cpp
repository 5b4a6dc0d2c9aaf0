#include "exporter/access/login_queue.hpp"

#include <algorithm>
#include <cstring>
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

LoginCheck& LoginQueue::add(LoginCheck check) {
  shares_.add(check.peer);
  return checks_.emplace_back(std::move(check));
}

LoginCheck LoginQueue::remove(const std::deque<LoginCheck>::iterator& check) {
  LoginCheck removed = std::move(*check);
  checks_.erase(check);
  shares_.remove(removed.peer);
  return removed;
}

std::optional<LoginCheck> LoginQueue::displace(const std::string& peer, LoginRank rank) {
  const std::optional<std::string> crowd = shares_.yields_to(peer);
  const auto may_yield = [&](const LoginCheck& check) {
    if (crowd) return check.peer == *crowd;
    return check.rank < rank && shares_.of(check.peer) >= shares_.of(peer);
  };
  auto last = checks_.end();
  for (auto check = checks_.begin(); check != checks_.end(); ++check) {
    if (may_yield(*check) && (last == checks_.end() || check->rank <= last->rank)) last = check;
  }
  if (last == checks_.end()) return std::nullopt;
  return remove(last);
}

std::optional<LoginCheck> LoginQueue::take() {
  const auto order = [this](const LoginCheck& check) {
    const auto turn = turns_.find(check.peer);
    return std::pair(turn == turns_.end() ? 0 : turn->second, -static_cast<int>(check.rank));
  };
  const auto first = std::ranges::min_element(checks_, {}, order);
  if (first == checks_.end()) return std::nullopt;
  constexpr std::size_t kMostPeers = 1024;
  if (turns_.size() >= kMostPeers) turns_.clear();
  turns_[first->peer] = ++turn_;
  return remove(first);
}

std::optional<LoginWaiter> LoginQueue::release(void* request) {
  for (auto check = checks_.begin(); check != checks_.end(); ++check) {
    const std::optional<LoginWaiter> released = release_from(*check, request);
    if (!released) continue;
    if (check->waiters.empty()) remove(check);
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
  shares_ = {};
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
