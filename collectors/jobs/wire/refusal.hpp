#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/enum_names.hpp"

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

/// The values of the label.
inline constexpr EnumNames<Refusal, kRefusalCount> kRefusalNames = {
    {{Refusal::too_long, "too_long"},
     {Refusal::too_many_lines, "too_many_lines"},
     {Refusal::malformed, "malformed"},
     {Refusal::bad_value, "bad_value"},
     {Refusal::bad_timestamp, "bad_timestamp"},
     {Refusal::unknown_metric, "unknown_metric"},
     {Refusal::wrong_type, "wrong_type"},
     {Refusal::bad_label, "bad_label"},
     {Refusal::rate_limit, "rate_limit"},
     {Refusal::series_limit, "series_limit"},
     {Refusal::user, "user"},
     {Refusal::identity, "identity"},
     {Refusal::connections, "connections"},
     {Refusal::client, "client"}}};
constexpr std::string_view to_string(Refusal refusal) noexcept { return kRefusalNames.of(refusal); }

}  // namespace gpumeter::jobs
