#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/mutex.hpp"
#include "exporter/http/negotiation/negotiate.hpp"

namespace gpumeter {

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
