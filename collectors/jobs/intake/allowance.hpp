#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "collectors/jobs/model/shared.hpp"

namespace gpumeter::jobs {

/// The lines of a datagram, unparsed.
std::uint64_t count_lines(std::string_view payload) noexcept;

/// How many lines of datagrams each user may send: a first limit, before a line is parsed. It rejects a flood
/// at the cost of one lookup. Twice as generous as jobs.limits.lines_per_second, so that it rejects nothing
/// that the exact limit of the model (User::take_line) would accept. One thread.
class Allowance {
 public:
  /// Users that are remembered. Users beyond it share one allowance; see tick().
  static constexpr std::size_t kMostUsers = 4096;

  Allowance(double lines_per_second, Nanoseconds now)
      : rate_(2 * lines_per_second), rest_(rate_, rate_, now) {}

  void set_rate(double lines_per_second) noexcept;
  /// Returns 0 if the user may send this payload, otherwise the number of its lines.
  std::uint64_t refuse(std::uint32_t user, std::string_view payload, Nanoseconds now);
  /// Forgets users that have their whole allowance. Call about once a second.
  void tick(Nanoseconds now);
  std::size_t users() const noexcept { return users_.size(); }

 private:
  TokenBucket& bucket_of(std::uint32_t user, Nanoseconds now);

  double rate_;
  TokenBucket rest_;
  std::unordered_map<std::uint32_t, TokenBucket> users_;
};

}  // namespace gpumeter::jobs
