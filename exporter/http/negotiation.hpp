#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "exporter/text/format.hpp"

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

/// The results of the last different pairs of headers: scrapers send the same ones each time, and parsing
/// them would take a tenth of the time of a small answer. Any thread.
class Negotiations {
 public:
  struct Result {
    NegotiatedFormat format;
    Encoding encoding;
  };

  /// As negotiate_format() and negotiate_encoding(). Headers of more than 1024 bytes together are not kept.
  Result of(std::string_view accept, std::string_view accept_encoding);

 private:
  struct Entry {
    std::string accept;
    std::string accept_encoding;
    Result result;
  };
  const Entry* find(std::string_view accept, std::string_view accept_encoding) const
      GPUMETER_REQUIRES(mutex_);

  static constexpr std::size_t kEntries = 8;  // two Prometheus, an agent, a browser, and as many again
  static constexpr std::size_t kLongest = 1024;

  Mutex mutex_;
  std::array<Entry, kEntries> entries_ GPUMETER_GUARDED_BY(mutex_) = {};
  std::size_t used_ GPUMETER_GUARDED_BY(mutex_) = 0;
  std::size_t next_ GPUMETER_GUARDED_BY(mutex_) = 0;  // the oldest, once all are used
};

}  // namespace gpumeter
