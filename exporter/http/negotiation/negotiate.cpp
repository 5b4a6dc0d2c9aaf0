#include "exporter/http/negotiation/negotiate.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>

#include "base/text.hpp"
#include "exporter/http/negotiation/accept_header.hpp"

namespace gpumeter {
namespace {

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

}  // namespace gpumeter
