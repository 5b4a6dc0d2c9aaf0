#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "exporter/history/history.hpp"

namespace gpumeter {

/// The body of /api/v1/history, a stable interface. The arguments are gpu=INDEX, uuid=UUID, or run=NAME and
/// user=USER; and range=5m (one value a second; the default) or range=6h (one for each 15 s):
///     {"gpu":"0","uuid":"GPU-..","range":"5m","step_seconds":1,"times":[1700000000,1700000001],
///      "columns":{"utilization_ratio":[0.5,null],..},"events":[{"time":1700000000,"name":"xid_79","kind":"event"}]}
/// `times` are the Unix times at which the slots start; null: no value. With range=6h a column is
/// {"min":[..],"mean":[..],"max":[..]}. A run has "run" and "user" instead of "gpu", "uuid" and "events". The
/// Error names the wrong argument and the valid ones.
Result<std::string> history_json(const History& history,
                                 std::span<const std::pair<std::string_view, std::string_view>> arguments);

}  // namespace gpumeter
