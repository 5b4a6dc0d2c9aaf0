#pragma once

#include <string_view>

#include "exporter/text/format.hpp"

namespace gpumeter {

/// The format a scraper gets, and the Content-Type that says so, `escaping` included.
struct NegotiatedFormat {
  Format format;
  std::string_view content_type;  ///< a literal
};

/// Chooses by the Accept header (several of them joined by commas) as prometheus/common's NegotiateAccept
/// does: by q, each media range matched with its `version`; nothing fits: text 0.0.4, never 406.
/// `escaping` is the last known one named up to the chosen range, `underscores` where none is; our names
/// are the same under all of them but `dots`, which therefore is answered with `underscores`.
NegotiatedFormat negotiate_format(std::string_view accept);

/// gzip where Accept-Encoding allows it and does not like identity better. A coding with q=0 is refused.
Encoding negotiate_encoding(std::string_view accept_encoding);

}  // namespace gpumeter
