#include "collectors/table/bound_rows.hpp"

#include <algorithm>
#include <utility>

namespace gpumeter {
namespace {

constexpr unsigned bit(RowState::Outcome outcome) noexcept { return 1U << static_cast<unsigned>(outcome); }

}  // namespace

void BoundRows::clear() noexcept { *this = {}; }

void BoundRows::add(const RowFacts& row, RowState& state, Reader read) {
  if (state.integrates()) integrating_.push_back(&state);
  if (read.settles()) counting_.push_back(rows_.size());
  rows_.push_back({&state, std::move(read), row.traits->wakes});
}

inline void BoundRows::sample_row(const Pass& pass, Bound& row, SampleSink& sink, Seen& seen) noexcept {
  if (!row.state->due(pass.now)) return;
  const unsigned outcome = bit(row.state->take(pass, row.read(), sink));
  seen.all |= outcome;
  if (row.wakes) seen.awake |= outcome;
}

bool BoundRows::sample(const Pass& pass, bool is_asleep, SampleSink& sink) noexcept {
  Seen seen = seen_;
  std::size_t next = std::exchange(cursor_, 0);
  for (; next < rows_.size(); ++next) {
    if (pass.yield != nullptr && pass.yield->should_yield()) {
      cursor_ = next;
      break;
    }
    Bound& row = rows_[next];
    if (is_asleep && row.wakes) {
      row.state->rest(sink);
    } else {
      sample_row(pass, row, sink, seen);
    }
  }
  seen_ = seen;
  return next == rows_.size();
}

PassOutcome BoundRows::outcome() const noexcept {
  using enum RowState::Outcome;
  if ((seen_.awake & (bit(failed) | bit(gap))) != 0 && (seen_.awake & bit(good)) == 0) {
    return PassOutcome::unread;
  }
  return (seen_.all & bit(gap)) != 0 ? PassOutcome::partial : PassOutcome::complete;
}

void BoundRows::settle(const Pass& pass, bool is_observed, SampleSink& sink) noexcept {
  const double elapsed = to_seconds(pass.elapsed);
  for (RowState* const state : integrating_) state->settle(elapsed, is_observed, sink);
  for (const std::size_t place : counting_) rows_[place].read.settle(is_observed);
}

void BoundRows::list_own_counters(std::vector<std::size_t>& slots) const {
  for (const Bound& row : rows_) {
    if (const auto slot = row.state->own_counter()) slots.push_back(*slot);
  }
}

bool BoundRows::resume(std::size_t slot, double total) noexcept {
  const auto found =
      std::ranges::find_if(rows_, [&](const Bound& row) { return row.state->own_counter() == slot; });
  if (found == rows_.end()) return false;
  found->state->resume(total);
  return true;
}

}  // namespace gpumeter
