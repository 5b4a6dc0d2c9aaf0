#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/enum_names.hpp"

namespace gpumeter::jobs {

/// The reason why a job's data was rejected: the label `reason` of gpumeter_jobs_dropped_total. Each rejected
/// line, or value of a packed line, counts once.
enum class Refusal : std::uint8_t {
  too_long,        ///< a datagram, frame or line over kMaxPayload
  too_many_lines,  ///< the lines of a datagram after kMaxLines
  malformed,       ///< neither a DogStatsD nor an MLLOG line
  bad_value,  ///< not a number, not finite, over kMaxValue, or negative for a metric that cannot be negative
  bad_timestamp,   ///< more than an hour from now
  unknown_metric,  ///< a metric or event outside the vocabulary
  wrong_type,      ///< a known metric with a type that it does not accept
  bad_label,       ///< a value outside the label's closed set
  rate_limit,      ///< the user sent more lines than its rate allows
  series_limit,    ///< no room for another series: counted under `_other`, or lost if it is a gauge
  user,            ///< a datagram or connection of a user that the configuration does not admit, or a
                   ///< benchmark's results of a user that may not send them
  identity,        ///< a datagram or connection under a uid that its process does not have
  connections,     ///< a connection beyond the limit of one user or of all users
  client,          ///< values that the client lost: rejected, or without room while the daemon did not read
  device,          ///< a benchmark's result of no GPU, or of a GPU that is not known
  stop,            ///< still queued when the daemon ended
};
inline constexpr std::size_t kRefusalCount = static_cast<std::size_t>(Refusal::stop) + 1;

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
     {Refusal::client, "client"},
     {Refusal::device, "device"},
     {Refusal::stop, "stop"}}};
constexpr std::string_view to_string(Refusal refusal) noexcept { return kRefusalNames.of(refusal); }

}  // namespace gpumeter::jobs
