#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "collectors/jobs/model/cells.hpp"
#include "collectors/jobs/wire/refusal.hpp"
#include "collectors/jobs/wire/sender.hpp"

namespace gpumeter::jobs {

/// The label of sums that belong to no single run or user.
inline constexpr std::string_view kOther = "_other";

/// The quotas of one user, and of all users together. The values are A9 of the reference unless a comment
/// names another source. They bound the model to 5000 runs, 1024 users, 8192 senders and 40000 series,
/// whatever jobs send.
struct Limits {
  /// Of one user; a packed line counts once for each value. As many at once after a second of silence.
  unsigned lines_per_second = 2000;
  std::size_t series_per_run = 640;  ///< room for every histogram of training, or of serving (buckets.hpp)
  std::size_t series_per_sender = 1280;  ///< see most_of_sender()
  std::size_t series_per_user = 8192;
  std::size_t series = 40000;
  std::size_t evaluations_per_run = 8;  ///< values of `metric`, which is not a closed set
  std::size_t customs_per_run = 16;     ///< of ml_custom: a few scalars, not a log of every weight
  std::size_t senders_per_user = 1024;  ///< more ranks and loaders than one machine runs
  std::size_t senders = 8192;
  std::size_t users = 1024;
  Nanoseconds retention = std::chrono::minutes(10);  ///< of a run without senders; at least two scrapes
  /// New series have budgets of their own, because every one stays in Prometheus after it has left the page.
  /// A full budget is as large as the limit of the series that are present, and an empty one is full again
  /// after this time.
  Nanoseconds renewal_of_sender =
      std::chrono::hours(1);  ///< of series_per_sender: few processes begin many runs
  Nanoseconds renewal_of_user = std::chrono::minutes(15);  ///< of series_per_user: short jobs on every GPU
  Nanoseconds renewal_of_users = std::chrono::hours(1);    ///< of `users`, for new ones without a name

  std::size_t most_of_sender() const noexcept { return std::max(series_per_sender, series_per_run); }
  bool operator==(const Limits&) const = default;
};

/// Tokens arrive at a steady rate, and each line takes some. Up to `capacity` unused tokens are kept. A line
/// may take more tokens than there are; the next ones then wait until the debt is paid. One thread.
class TokenBucket {
 public:
  TokenBucket(double rate, double capacity, Nanoseconds now) noexcept
      : rate_(rate), capacity_(capacity), tokens_(capacity), filled_(now) {}

  /// Changes the limits. Unused tokens are kept up to the new capacity.
  void set(double rate, double capacity) noexcept {
    rate_ = rate;
    capacity_ = capacity;
    tokens_ = std::min(tokens_, capacity);
  }

  bool take(Nanoseconds now, double tokens = 1) noexcept {
    tokens_ = tokens_at(now);
    filled_ = std::max(filled_, now);
    if (tokens_ < 1) return false;
    tokens_ -= tokens;
    return true;
  }
  bool is_full(Nanoseconds now) const noexcept { return tokens_at(now) >= capacity_; }
  bool has_any(Nanoseconds now) const noexcept { return tokens_at(now) >= 1; }

 private:
  double tokens_at(Nanoseconds now) const noexcept {
    return std::min(capacity_, tokens_ + rate_ * std::max(0.0, to_seconds(now - filled_)));
  }

  double rate_;
  double capacity_;
  double tokens_;
  Nanoseconds filled_;
};

/// The budget of new series or users: `most` at once, and as many again over `renewal`.
inline TokenBucket budget_of(std::size_t most, Nanoseconds renewal, Nanoseconds now) noexcept {
  const auto capacity = static_cast<double>(most);
  return {capacity / to_seconds(renewal), capacity, now};
}

/// State that the users of one model share: their source in the store, the limits, the current usage, and the
/// counts of dropped data.
struct Shared {
  Source& source;
  Limits limits;
  const IsAlive is_alive;
  std::size_t series = 0;
  std::size_t members = 0;  ///< processes of runs: a process of two runs counts twice
  std::size_t processes = 0;
  /// Removes a run of the user with the most series, if that user has more than `series`. Returns false if
  /// there is none.
  std::function<bool(std::size_t series, Nanoseconds now)> make_room = {};
  std::array<std::uint64_t, kRefusalCount> dropped{};
  Cells other{RunSeries(source, kOther, kOther)};  ///< of user `_other`: sums for which no series was left
  Nanoseconds other_updated{};

  void drop(Refusal refusal, std::uint64_t count = 1) noexcept {
    dropped[static_cast<std::size_t>(refusal)] += count;
  }
};

}  // namespace gpumeter::jobs
