#pragma once

#include <string_view>
#include <vector>

namespace gpumeter {

/// One element of an Accept or Accept-Encoding header, a view on it.
struct AcceptRange {
  std::string_view value;       ///< "text/plain", "*/*", "gzip"
  std::string_view parameters;  ///< what follows its first `;`
  double quality = 1;           ///< its `q`

  /// The last one of this name (Prometheus 3.0 sends some twice); empty without one.
  std::string_view parameter(std::string_view name) const noexcept;
};

/// The elements in order of preference: by q, then the exact before those with wildcards, then as they
/// stand. Those with q=0 are left in, at the end: Accept-Encoding forbids codings so. A q that is no
/// number counts as 1, as in Go.
std::vector<AcceptRange> parse_accept(std::string_view header);

/// ASCII only, as HTTP compares its tokens.
bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept;

}  // namespace gpumeter
