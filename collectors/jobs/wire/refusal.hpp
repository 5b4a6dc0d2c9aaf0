#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpumeter::jobs {

/// Why something that a job sent was not taken: the label `reason` of gpumeter_jobs_dropped_total. Each
/// refused line, or value of a packed line, counts once.
enum class Refusal : std::uint8_t {
  too_long,        ///< a datagram, frame or line over kMaxPayload
  too_many_lines,  ///< the lines of a datagram after kMaxLines
  malformed,       ///< no DogStatsD or MLLOG line
  bad_value,       ///< not a number, not finite, over kMaxValue, or negative where that cannot be
  bad_timestamp,   ///< more than an hour from now
  unknown_metric,  ///< a name or an event that the vocabulary does not have
  wrong_type,      ///< a name of the vocabulary with a type that it does not take
  bad_label,       ///< a value outside the label's closed set
  rate_limit,      ///< the user sent more lines than its share
  series_limit,    ///< no room for one more series: counted under `_other`, or lost where it is a gauge
  user,            ///< a datagram or connection of a user that the config does not let in
  identity,        ///< a datagram or connection under a uid that its process does not have
  connections,     ///< a connection beyond those that a user, or all users, may hold
  client,          ///< values that a client says it lost itself: refused, or found no room while nobody read
};
inline constexpr std::size_t kRefusalCount = static_cast<std::size_t>(Refusal::client) + 1;

/// The label value. Any thread.
constexpr std::string_view to_string(Refusal refusal) noexcept {
  constexpr std::string_view kNames[kRefusalCount] = {
      "too_long",       "too_many_lines", "malformed",   "bad_value",  "bad_timestamp",
      "unknown_metric", "wrong_type",     "bad_label",   "rate_limit", "series_limit",
      "user",           "identity",       "connections", "client"};
  return kNames[static_cast<std::size_t>(refusal)];
}

}  // namespace gpumeter::jobs
