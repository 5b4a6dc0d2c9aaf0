#pragma once

#include <string_view>
#include <vector>

namespace gpumeter {

/// One element of an Accept or Accept-Encoding header; its members are views of the header.
struct AcceptRange {
  std::string_view value;       ///< "text/plain", "*/*", "gzip"
  std::string_view parameters;  ///< the text after its first `;`
  double quality = 1;           ///< its `q`

  /// The last parameter of this name (Prometheus 3.0 sends some twice); empty if there is none.
  std::string_view parameter(std::string_view name) const noexcept;
};

/// Returns the elements in order of preference: by q, then exact ones before wildcards, then in the header's
/// order. Elements with q=0 stay in the list, at the end, because Accept-Encoding uses them to forbid
/// codings. A q that is not a number counts as 1, as in Go.
std::vector<AcceptRange> parse_accept(std::string_view header);

bool equals_ignoring_case_of(std::string_view a, std::string_view b) noexcept;

/// Ignores the case of ASCII letters only, as HTTP requires for its tokens. Most comparisons end at the
/// length: each header of a request is compared with eight names.
inline bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && equals_ignoring_case_of(a, b);
}

}  // namespace gpumeter
