#include "exporter/http/negotiation.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include "base/text.hpp"

namespace gpumeter {
namespace {

std::string_view unquoted(std::string_view text) noexcept {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

/// Takes the next part and removes the blanks around it.
std::string_view take_part(std::string_view& rest, char separator) noexcept {
  return trimmed(take_until(rest, separator));
}

double quality_of(std::string_view text) noexcept {
  const double quality = parse_number<double>(text).value_or(1);
  return quality > 0 ? std::min(quality, 1.0) : 0;
}

AcceptRange parse_range(std::string_view text) noexcept {
  AcceptRange range{.value = take_part(text, ';'), .parameters = text};
  const std::string_view quality = range.parameter("q");
  if (!quality.empty()) range.quality = quality_of(quality);
  return range;
}

auto preference(const AcceptRange& range) noexcept {
  return std::tuple(-range.quality, range.value.starts_with('*'), range.value.ends_with('*'));
}

/// Index into ServerFormat::content_types.
enum Escaping : std::size_t { underscores, allow_utf8, values };

struct ServerFormat {
  Format format;
  std::string_view type;
  std::string_view version;
  bool is_default_version;  ///< used if the range names no version
  std::array<std::string_view, 3> content_types;
  std::string_view message =
      {};  ///< parameter `proto`, which the range must name; its messages are delimited
};

/// In order of preference: browsers and curl, which accept everything, get the text format.
constexpr ServerFormat kFormats[] = {
    {Format::text,
     "text/plain",
     "0.0.4",
     true,
     {"text/plain; version=0.0.4; charset=utf-8; escaping=underscores",
      "text/plain; version=0.0.4; charset=utf-8; escaping=allow-utf-8",
      "text/plain; version=0.0.4; charset=utf-8; escaping=values"}},
    {Format::openmetrics,
     "application/openmetrics-text",
     "1.0.0",
     false,
     {"application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores",
      "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=allow-utf-8",
      "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=values"}},
    {Format::openmetrics,
     "application/openmetrics-text",
     "0.0.1",
     true,
     {"application/openmetrics-text; version=0.0.1; charset=utf-8; escaping=underscores",
      "application/openmetrics-text; version=0.0.1; charset=utf-8; escaping=allow-utf-8",
      "application/openmetrics-text; version=0.0.1; charset=utf-8; escaping=values"}},
    {Format::protobuf,
     "application/vnd.google.protobuf",
     "",
     true,
     {"application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; "
      "escaping=underscores",
      "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; "
      "escaping=allow-utf-8",
      "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; "
      "escaping=values"},
     "io.prometheus.client.MetricFamily"},
};

bool matches(const AcceptRange& range, const ServerFormat& format) noexcept {
  const std::string_view version = range.parameter("version");
  const std::string_view type = range.value;
  if (type.ends_with("/*")) {
    const bool version_fits = version.empty() || version == format.version;
    const std::string_view group = type.substr(0, type.size() - 1);
    return version_fits &&
           (type == "*/*" || equals_ignoring_case(group, format.type.substr(0, group.size())));
  }
  const bool is_message = range.parameter("proto") == format.message &&
                          equals_ignoring_case(range.parameter("encoding"), "delimited");
  return equals_ignoring_case(type, format.type) && (format.message.empty() || is_message) &&
         (version == format.version || (version.empty() && format.is_default_version));
}

std::optional<Escaping> escaping_of(const AcceptRange& range) noexcept {
  const std::string_view word = range.parameter("escaping");
  if (word == "underscores" || word == "dots") return underscores;
  if (word == "allow-utf-8") return allow_utf8;
  if (word == "values") return values;
  return std::nullopt;
}

}  // namespace

std::string_view AcceptRange::parameter(std::string_view name) const noexcept {
  std::string_view found;
  for (std::string_view rest = parameters; !rest.empty();) {
    std::string_view text = take_part(rest, ';');
    if (equals_ignoring_case(take_part(text, '='), name)) found = unquoted(trimmed(text));
  }
  return found;
}

std::vector<AcceptRange> parse_accept(std::string_view header) {
  std::vector<AcceptRange> ranges;
  ranges.reserve(8);  // Prometheus sends 4 or 5
  while (!header.empty()) {
    const std::string_view element = take_part(header, ',');
    if (element.empty()) continue;
    const AcceptRange range = parse_range(element);
    ranges.insert(std::ranges::upper_bound(ranges, preference(range), {}, preference), range);
  }
  return ranges;
}

bool equals_ignoring_case_of(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, {}, lower, lower);
}

NegotiatedFormat negotiate_format(std::string_view accept) {
  Escaping escaping = underscores;
  for (const AcceptRange& range : parse_accept(accept)) {
    if (range.quality == 0) break;
    escaping = escaping_of(range).value_or(escaping);
    for (const ServerFormat& format : kFormats) {
      if (matches(range, format)) return {format.format, format.content_types[escaping]};
    }
  }
  return {Format::text, kFormats[0].content_types[escaping]};
}

Encoding negotiate_encoding(std::string_view accept_encoding) {
  std::optional<double> gzip;
  std::optional<double> any;
  double identity = 0;  // if unnamed, identity is always allowed and never preferred
  for (const AcceptRange& coding : parse_accept(accept_encoding)) {
    if (equals_ignoring_case(coding.value, "gzip") || equals_ignoring_case(coding.value, "x-gzip")) {
      gzip = coding.quality;
    } else if (equals_ignoring_case(coding.value, "identity")) {
      identity = coding.quality;
    } else if (coding.value == "*") {
      any = coding.quality;
    }
  }
  const double quality = gzip.value_or(any.value_or(0));
  return quality > 0 && quality >= identity ? Encoding::gzip : Encoding::identity;
}

Nanoseconds scrape_timeout(std::string_view seconds) noexcept {
  constexpr double kLongest = 3600;  // far above the server's limit
  const std::optional<double> number = parse_number<double>(seconds);
  if (!number || !(*number > 0)) return Nanoseconds::max();
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(std::min(*number, kLongest)));
}

Negotiations::Result Negotiations::of(std::string_view accept, std::string_view accept_encoding) {
  {
    const MutexLock lock(mutex_);
    if (const Entry* const known = find(accept, accept_encoding)) return known->result;
  }
  const Result result{negotiate_format(accept), negotiate_encoding(accept_encoding)};
  if (accept.size() + accept_encoding.size() > kLongest) return result;
  Entry entry{std::string(accept), std::string(accept_encoding), result};
  const MutexLock lock(mutex_);
  if (find(accept, accept_encoding) == nullptr) {
    std::swap(entries_[next_], entry);  // the replaced texts are freed after the lock is released
    used_ = std::max(used_, next_ + 1);
    next_ = (next_ + 1) % kEntries;
  }
  return result;
}

const Negotiations::Entry* Negotiations::find(std::string_view accept,
                                              std::string_view accept_encoding) const {
  for (std::size_t i = 0; i < used_; ++i) {
    const Entry& entry = entries_[i];
    if (entry.accept == accept && entry.accept_encoding == accept_encoding) return &entry;
  }
  return nullptr;
}

}  // namespace gpumeter
