#include "programs/nccl/progress.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include "collectors/api/catalog.hpp"

namespace gpumeter::nccl {
namespace {

/// The value of the label `state` of ml_nccl_stalled_rank; empty: the rank is not named.
std::string_view stalled_state(RankState state, bool is_behind) noexcept {
  if (state == RankState::dead || state == RankState::missing) return to_string(state);
  return is_behind ? "behind" : "";
}

}  // namespace

void Progress::update(const Answer& answer, const IsLocal& is_local, Nanoseconds now) {
  gpus_.clear();
  lag_ = 0;
  has_advanced_ = seen_.empty();
  std::map<MemberId, Seen> seen;
  for (const Communicator& communicator : answer.communicators) take(communicator, is_local, seen);
  // A job that creates or destroys communicators works.
  if (seen.size() != seen_.size()) has_advanced_ = true;
  if (has_advanced_) advanced_at_ = now;
  answered_at_ = now;
  seen_ = std::move(seen);
  note_lead(answer, is_local);
}

Progress::GpuId Progress::id_of(const Communicator& communicator, const Rank& rank) {
  if (rank.pid > 0) return {rank.host, rank.pid, rank.device, {}};
  return {rank.host, rank.pid, rank.device, communicator.id + "/" + std::to_string(rank.rank)};
}

void Progress::take(const Communicator& communicator, const IsLocal& is_local,
                    std::map<MemberId, Seen>& seen) {
  std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t highest = 0;
  for (const Rank& rank : communicator.ranks) {
    if (!rank.has_counts) continue;
    lowest = std::min(lowest, rank.total());
    highest = std::max(highest, rank.total());
  }
  if (lowest <= highest) lag_ = std::max(lag_, highest - lowest);
  for (const Rank& rank : communicator.ranks) {
    Gpu& gpu = gpus_[id_of(communicator, rank)];
    gpu.state = std::max(gpu.state, rank.state);
    if (communicator.size > gpu.of_size) gpu.rank = rank.rank, gpu.of_size = communicator.size;
    if (!rank.has_counts) continue;
    const MemberId id{communicator.id, rank.rank};
    const auto found = seen_.find(id);
    const Seen* before = found == seen_.end() ? nullptr : &found->second;
    const bool stands = before != nullptr && before->launched == rank.launched;
    const bool is_behind = rank.total() < highest;
    // Ranks are read one after another: a difference that remains is one.
    if (stands && is_behind && before->was_behind) gpu.is_behind = true;
    if (!stands) has_advanced_ = true;
    if (rank.total() > 0) has_launched_ = true;
    if (is_local(rank)) count(rank, before);
    seen[id] = {rank.launched, is_behind};
  }
}

// A communicator with lower counts than before is another one.
void Progress::count(const Rank& rank, const Seen* before) {
  for (std::size_t op = 0; op < kOps.size(); ++op) {
    const std::uint64_t past = before == nullptr ? 0 : before->launched.at(op);
    const std::uint64_t now = rank.launched.at(op);
    local_launches_.at(op) += static_cast<double>(now >= past ? now - past : now);
  }
}

void Progress::note_lead(const Answer& answer, const IsLocal& is_local) {
  const auto largest = std::ranges::max_element(answer.communicators, {}, &Communicator::size);
  leads_ = largest == answer.communicators.end();
  if (leads_) return;
  const Rank* lowest = nullptr;
  for (const Rank& rank : largest->ranks) {
    if (rank.has_counts && (lowest == nullptr || rank.rank < lowest->rank)) lowest = &rank;
  }
  leads_ = lowest == nullptr || is_local(*lowest);
}

void Progress::write(const Labels& labels, SeriesList& out) const {
  std::array<double, kRankStates> ranks{};
  for (const auto& [id, gpu] : gpus_) ranks.at(static_cast<std::size_t>(gpu.state)) += 1;
  for (const auto& [state, name] : kRankStateNames) {
    out.add(catalog::ml_nccl_ranks, labels.with({{"state", std::string(name)}}),
            ranks.at(static_cast<std::size_t>(state)));
  }
  for (std::size_t op = 0; op < kOps.size(); ++op) {
    const bool is_known = !kOps.at(op).in_answer.empty();
    if (!is_known && local_launches_.at(op) == 0) continue;
    out.add(catalog::ml_nccl_collectives, labels.with({{"op", std::string(kOps.at(op).label)}}),
            local_launches_.at(op));
  }
  out.add(catalog::ml_nccl_rank_lag, labels, static_cast<double>(lag_));
  // As of the last answer, because a machine that asks seldom does not know what happened since. A job
  // without collective operations never advances.
  if (has_launched_)
    out.add(catalog::ml_nccl_stalled_seconds, labels, to_seconds(answered_at_ - advanced_at_));
  for (const auto& [rank, host, state] : stalled()) {
    out.add(catalog::ml_nccl_stalled_rank,
            labels.with({{"rank", std::to_string(rank)}, {"host", host}, {"state", std::string(state)}}), 1);
  }
}

// A set: two groups of ranks that have no communicator in common may have the same numbers.
std::vector<Progress::Stalled> Progress::stalled() const {
  std::set<Stalled> named;
  for (const auto& [id, gpu] : gpus_) {
    const std::string_view state = stalled_state(gpu.state, gpu.is_behind);
    if (!state.empty()) named.insert({gpu.rank, id.host, state});
    if (named.size() > kMostNamed) named.erase(std::prev(named.end()));
  }
  return {named.begin(), named.end()};
}

}  // namespace gpumeter::nccl
