#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/users.hpp"

namespace gpumeter {

/// How the server stops and continues the work on a request. Neither function may block.
struct Pausing {
  void (*pause)(void* request) noexcept;
  void (*resume)(void* request) noexcept;
};

/// A request that waits for a job.
struct Waiter {
  void* request;     ///< identifies it until it is resumed
  std::string peer;  ///< Peer::key of who sent it
  void (*resume)(void* request) noexcept;
};

/// Jobs that requests wait for until a thread has done them: who may wait, whose turn it is, and what the
/// answers are. Requests with the same key share a job. Peers share the places of a lane and take turns, so
/// that none of them keeps the others out, whatever it asks for. A job is its first waiter's.
///
/// Not thread-safe: the owner's mutex also guards what pauses requests. A request is therefore paused until
/// it is resumed here, and exists. Resuming it sets a flag and wakes a thread; it does not block.
template <class Key, class Work, class Answer>
class WaitingRoom {
 public:
  struct Job {
    Key key{};
    Work work{};
    unsigned lane = 0;  ///< jobs of lower lanes go first; each lane has its own places
    unsigned rank =
        0;  ///< of one peer's jobs, higher ones go first, and displace lower ones from a full lane
    std::vector<Waiter> waiters = {};  ///< not empty
  };

  /// `places` of each lane; `refusal` answers a request that has none, or need not wait any longer.
  WaitingRoom(std::size_t places, Answer refusal) : places_(places), refusal_(std::move(refusal)) {}

  /// The answer to a request that was resumed.
  std::optional<Answer> answer_to(void* request) {
    auto found = answers_.extract(request);
    if (!found) return std::nullopt;
    return std::move(found.mapped());
  }

  /// Waits for the job with this key, if there is one.
  bool join(const Key& key, const Waiter& waiter) {
    if (is_closed_) return false;
    for (std::deque<Job>* jobs : {&running_, &waiting_}) {
      const auto found = std::ranges::find(*jobs, key, &Job::key);
      if (found == jobs->end()) continue;
      found->waiters.push_back(waiter);
      return true;
    }
    return false;
  }

  /// Adds a job. Returns the key of the one that has no place: nullopt, the job's own, or that of another
  /// one, whose requests were refused.
  std::optional<Key> add(Job job) {
    if (is_closed_) return job.key;
    const auto in_lane = std::ranges::count(waiting_, job.lane, &Job::lane);
    const bool is_full = static_cast<std::size_t>(in_lane) >= places_;
    const std::optional<Key> displaced = is_full ? displace_for(job) : std::nullopt;
    if (is_full && !displaced) return job.key;
    waiting_.push_back(std::move(job));
    return displaced;
  }

  /// The first job of the peer whose last turn was the longest ago, in lanes up to `last`. The job is under
  /// way until finish(); its waiters stay here.
  std::optional<Job> take(unsigned last = ~0U) {
    auto first = waiting_.end();
    for (auto job = waiting_.begin(); job != waiting_.end(); ++job) {
      if (job->lane <= last && (first == waiting_.end() || order(*job) < order(*first))) first = job;
    }
    if (first == waiting_.end()) return std::nullopt;
    constexpr std::size_t kMostPeers = 1024;
    if (turns_.size() >= kMostPeers) turns_.clear();
    turns_[peer_of(*first)] = ++turn_;
    Job taken{first->key, std::move(first->work), first->lane, first->rank};
    running_.push_back({.key = taken.key, .waiters = std::move(first->waiters)});
    waiting_.erase(first);
    return taken;
  }

  void finish(const Key& key, const Answer& answer) {
    const auto job = std::ranges::find(running_, key, &Job::key);
    for (const Waiter& waiter : job->waiters) resume(waiter, answer);
    running_.erase(job);
  }

  /// Refuses a request that need not wait, such as one whose client is gone. No effect on others.
  void release(void* request) {
    const auto is_it = [request](const Waiter& waiter) { return waiter.request == request; };
    for (std::deque<Job>* jobs : {&running_, &waiting_}) {
      for (Job& job : *jobs) refuse(job, is_it);
    }
    std::erase_if(waiting_, [](const Job& job) { return job.waiters.empty(); });
  }
  /// The request ended; its address may be used again.
  void forget(void* request) { answers_.erase(request); }

  /// Refuses all requests, and those that come later.
  void close() {
    is_closed_ = true;
    for (std::deque<Job>* jobs : {&running_, &waiting_}) {
      for (Job& job : *jobs) refuse(job, [](const Waiter&) { return true; });
    }
    waiting_.clear();
  }

 private:
  static const std::string& peer_of(const Job& job) { return job.waiters.front().peer; }

  auto order(const Job& job) const {
    const auto turn = turns_.find(peer_of(job));
    return std::tuple(job.lane, turn == turns_.end() ? 0 : turn->second, ~job.rank);
  }

  void resume(const Waiter& waiter, const Answer& answer) {
    answers_.insert_or_assign(waiter.request, answer);
    waiter.resume(waiter.request);
  }

  template <class Belongs>
  void refuse(Job& job, Belongs belongs) {
    for (const Waiter& waiter : job.waiters) {
      if (belongs(waiter)) resume(waiter, refusal_);
    }
    std::erase_if(job.waiters, belongs);
  }

  /// Makes room in the lane: the last job of the lowest rank of the peer with the most. If no peer has that
  /// many more, one of a lower rank, of a peer with at least as many. The requests of other peers for that
  /// job keep it, and it is theirs then. nullopt: the newcomer has no place.
  std::optional<Key> displace_for(const Job& newcomer) {
    while (true) {
      const auto job = yielding_to(newcomer);
      if (job == waiting_.end()) return std::nullopt;
      refuse(*job, [peer = peer_of(*job)](const Waiter& waiter) { return waiter.peer == peer; });
      if (!job->waiters.empty()) continue;
      Key key = std::move(job->key);
      waiting_.erase(job);
      return key;
    }
  }

  typename std::deque<Job>::iterator yielding_to(const Job& newcomer) {
    Shares<std::string> shares;
    for (const Job& job : waiting_) {
      if (job.lane == newcomer.lane) shares.add(peer_of(job));
    }
    const std::optional<std::string> crowd = shares.yields_to(peer_of(newcomer));
    const auto yields = [&](const Job& job) {
      if (job.lane != newcomer.lane) return false;
      if (crowd) return peer_of(job) == *crowd;
      return job.rank < newcomer.rank && shares.of(peer_of(job)) >= shares.of(peer_of(newcomer));
    };
    auto last = waiting_.end();
    for (auto job = waiting_.begin(); job != waiting_.end(); ++job) {
      if (yields(*job) && (last == waiting_.end() || job->rank <= last->rank)) last = job;
    }
    return last;
  }

  const std::size_t places_;
  const Answer refusal_;
  std::deque<Job> waiting_;  ///< in the order of their arrival
  std::deque<Job> running_;
  std::map<void*, Answer> answers_;             ///< of resumed requests
  std::map<std::string, std::uint64_t> turns_;  ///< of the last peers
  std::uint64_t turn_ = 0;
  bool is_closed_ = false;
};

}  // namespace gpumeter
