#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// The body of /api/v1/series, a stable interface, with one series a line:
///     {"series":[{"name":"gpu_up","labels":{"gpu":"0"},"value":1,"unit":"","type":"gauge","age_seconds":0.4}]}
/// Each text of `match` selects series as in PromQL, with the operators = and !=: `name`,
/// `name{label="value"}`,
/// `{label!="value"}`. A series is listed if any of them selects it; without `match`, all are. `name` is that
/// of the text page; the name of a histogram selects all of its series. NaN, +Inf and -Inf are strings.
/// `age_seconds` is the time since the source of the series last committed. An Error: what would be right.
Result<std::string> series_json(const Store& store, std::span<const std::string_view> match, Nanoseconds now);

}  // namespace gpumeter
