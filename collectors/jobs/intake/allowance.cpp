#include "collectors/jobs/intake/allowance.hpp"

#include <algorithm>

namespace gpumeter::jobs {

std::uint64_t count_lines(std::string_view payload) noexcept {
  const auto ends = static_cast<std::uint64_t>(std::ranges::count(payload, '\n'));
  return ends + (payload.ends_with('\n') ? 0 : 1);
}

void Allowance::set_rate(double lines_per_second) noexcept {
  rate_ = 2 * lines_per_second;
  rest_.set(rate_, rate_);
  for (auto& [user, bucket] : users_) bucket.set(rate_, rate_);
}

TokenBucket& Allowance::bucket_of(std::uint32_t user, Nanoseconds now) {
  const auto found = users_.find(user);
  if (found != users_.end()) return found->second;
  if (users_.size() >= kMostUsers) return rest_;
  return users_.try_emplace(user, rate_, rate_, now).first->second;
}

std::uint64_t Allowance::refuse(std::uint32_t user, std::string_view payload, Nanoseconds now) {
  const std::uint64_t lines = count_lines(payload);
  return bucket_of(user, now).take(now, static_cast<double>(lines)) ? 0 : lines;
}

void Allowance::tick(Nanoseconds now) {
  std::erase_if(users_, [&](const auto& entry) { return entry.second.is_full(now); });
}

}  // namespace gpumeter::jobs
