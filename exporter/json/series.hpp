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
/// `name{label="value"}` or `{label!="value"}`. The page lists a series if any of them selects it, and all
/// series if `match` is empty. `name` is the name on the text page; the name of a histogram selects all of
/// its series. NaN, +Inf and -Inf are strings. `age_seconds` is the time since the series' source last
/// committed. The Error names the wrong text and the valid syntax.
Result<std::string> series_json(const Store& store, std::span<const std::string_view> match, Nanoseconds now);

}  // namespace gpumeter
