#pragma once

#include <algorithm>
#include <cstddef>

#include "collectors/jobs/wire/sender.hpp"

namespace gpumeter::jobs {

/// What one user can take of the daemon. A9 of the reference where no other source is given; the config
/// may set them. With these values the model and two snapshots stay under 36 MB whatever is sent: at most
/// 5000 runs, 1024 users, 8192 senders and 40000 series. (Measured with all series given away and 64-byte
/// names: 3.1 MB of state and 10.7 MB a snapshot of short runs, 0.5 and 16 MB of 240 runs with histograms.)
struct Limits {
  double lines_per_second = 2000;    ///< of a uid
  double burst_lines = 2000;         ///< at once, after a second of silence
  std::size_t series_per_run = 640;  ///< room for every histogram of training, or of serving (buckets.hpp)
  std::size_t series_per_sender = 1280;
  std::size_t series_per_user = 8192;
  std::size_t series = 40000;
  std::size_t evaluations_per_run = 8;  ///< values of `metric`, which is no closed set
  std::size_t customs_per_run = 16;     ///< of ml_custom: a few scalars to look at, no log of every weight
  std::size_t senders_per_user = 1024;  ///< more ranks and loaders than one machine runs
  std::size_t senders = 8192;
  std::size_t users = 1024;
  Nanoseconds retention = std::chrono::minutes(10);  ///< of a run without senders; two scrapes at the least
};

/// How far a client's time may be from the machine's (A9): it is not shown, it only says that a line is not
/// of another day.
inline constexpr Nanoseconds kTimestampTolerance = std::chrono::hours(1);

/// Tokens come in at a steady rate and are taken one a line; `capacity` of them can wait. One thread.
class TokenBucket {
 public:
  TokenBucket(double rate, double capacity, Nanoseconds now) noexcept
      : rate_(rate), capacity_(capacity), tokens_(capacity), filled_(now) {}

  /// Other limits from now on; what waits is kept as far as it fits.
  void set(double rate, double capacity) noexcept {
    rate_ = rate;
    capacity_ = capacity;
    tokens_ = std::min(tokens_, capacity);
  }

  bool take(Nanoseconds now) noexcept {
    tokens_ = std::min(capacity_, tokens_ + rate_ * std::max(0.0, to_seconds(now - filled_)));
    filled_ = std::max(filled_, now);
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  double rate_;
  double capacity_;
  double tokens_;
  Nanoseconds filled_;
};

}  // namespace gpumeter::jobs
