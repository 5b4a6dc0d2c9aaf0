#pragma once

#include <string_view>

#include "base/clock.hpp"
#include "exporter/text/format.hpp"

namespace gpumeter {

/// The format of an answer and its Content-Type, including `escaping`.
struct NegotiatedFormat {
  Format format;
  std::string_view content_type;  ///< a literal
};

/// Chooses the format by the Accept header (several headers joined by commas) as prometheus/common's
/// NegotiateAccept does. It tries the media ranges by q, each matched with its `version`. If none matches,
/// the format is text 0.0.4; the answer is never 406. `escaping` is the last known one named up to the chosen
/// range, or `underscores` if none is named. Our names are the same under all schemes except `dots`, which is
/// therefore answered with `underscores`.
NegotiatedFormat negotiate_format(std::string_view accept);

/// Chooses gzip if Accept-Encoding allows it and does not prefer identity. A coding with q=0 is not used.
Encoding negotiate_encoding(std::string_view accept_encoding);

/// After this time the client gives up, as the header X-Prometheus-Scrape-Timeout-Seconds states it: "10" or
/// "9.5". The longest time there is, and thus the server's own limit, if the text is no positive number. An
/// hour stands for all longer times.
Nanoseconds scrape_timeout(std::string_view seconds) noexcept;

}  // namespace gpumeter
