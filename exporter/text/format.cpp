#include "exporter/text/format.hpp"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "base/text.hpp"

namespace gpumeter {
namespace {

constexpr int kLevel = 1;
constexpr int kGzipWindowBits = 15 + 16;  // deflateInit2: 15 is the largest window, 16 adds a gzip header
constexpr int kMemoryLevel = 8;           // zlib's default

std::string escaped(std::string_view raw, bool quotes) {
  std::string out;
  out.reserve(raw.size());
  while (!raw.empty()) {
    const Character next = take_character(raw);
    if (!next) {
      out += kReplacement;
    } else if (next.code == '\n') {
      out += "\\n";
    } else {
      if (next.code == '\\' || (next.code == '"' && quotes)) out += '\\';
      out += next.bytes;
    }
  }
  return out;
}

std::string metadata(std::string_view keyword, std::string_view name, std::string_view text) {
  std::string line("# ");
  line.append(keyword).append(" ").append(name).append(" ").append(text).append("\n");
  return line;
}

/// OpenMetrics' name of the family: `_total` belongs to the counter's sample only.
std::string_view openmetrics_name(const MetricDescriptor& family) noexcept {
  std::string_view name = family.name;
  if (family.type == MetricType::counter && name.ends_with("_total")) name.remove_suffix(6);
  return name;
}

/// OpenMetrics calls untyped families unknown, and so must be a counter whose name lacks `_total`.
std::string_view openmetrics_type(const MetricDescriptor& family) noexcept {
  const bool is_unknown = family.type == MetricType::untyped ||
                          (family.type == MetricType::counter && !family.name.ends_with("_total"));
  return is_unknown ? "unknown" : to_string(family.type);
}

void append_labels(const Labels& labels, std::string& to) {
  char before = '{';
  for (const auto& [name, value] : labels.pairs()) {
    to.append(1, before).append(name).append("=\"").append(escaped_label(value)).append("\"");
    before = ',';
  }
  to.append(before == ',' ? "} " : " ");
}

}  // namespace

std::string escaped_label(std::string_view raw) { return escaped(raw, true); }

char* write_value(char* to, double value) noexcept {
  // Most values are small whole numbers, whose text equals that of integers; from 1e6 on, %g uses an
  // exponent. Minus zero takes the general path, which keeps its sign.
  constexpr double kExponentFrom = 1e6;
  if (std::abs(value) < kExponentFrom) {
    const auto whole = static_cast<std::int32_t>(value);
    if (value == whole && (whole != 0 || !std::signbit(value))) {
      return std::to_chars(to, to + kValueTextMax, whole).ptr;
    }
  }
  if (!std::isfinite(value)) {
    const std::string_view word = std::isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
    return std::ranges::copy(word, to).out;
  }
  return std::to_chars(to, to + kValueTextMax, value, std::chars_format::general).ptr;
}

std::string family_header(const MetricDescriptor& family, Format format) {
  const std::string help = escaped(family.help, format == Format::openmetrics);
  if (format == Format::text) {
    return metadata("HELP", family.name, help) + metadata("TYPE", family.name, to_string(family.type));
  }
  const std::string_view name = openmetrics_name(family);
  std::string header = metadata("TYPE", name, openmetrics_type(family));
  if (!family.unit.empty()) header += metadata("UNIT", name, family.unit);
  return header + metadata("HELP", name, help);
}

void append_line_prefix(const MetricDescriptor& family, SeriesPart part, const Labels& labels,
                        std::string& to) {
  to.append(family.name).append(suffix_of(part));
  append_labels(labels, to);
}

void append_created_prefix(const MetricDescriptor& family, const Labels& labels, std::string& to) {
  to.append(openmetrics_name(family)).append("_created");
  append_labels(labels, to);
}

Result<std::string> gzip(std::string_view bytes) {
  z_stream stream{};
  if (bytes.size() > std::numeric_limits<uInt>::max() / 2)
    return Error("gzip: the page is too long for one call of zlib");
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindowBits, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    return Error("gzip: zlib is out of memory");
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, deflateEnd);
  std::string out(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib only reads it
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) return Error("gzip: zlib could not compress the page");
  out.resize(stream.total_out);
  out.shrink_to_fit();  // pages are kept, and deflateBound() assumes incompressible data
  return out;
}

Result<std::string> gunzip(std::string_view file) {
  constexpr std::size_t kTrailer = 4;  // the length of the bytes, little-endian
  if (file.size() < kTrailer) return Error("gunzip: the file is cut");
  std::size_t length = 0;
  for (std::size_t i = 1; i <= kTrailer; ++i) {
    length = length << 8 | static_cast<unsigned char>(file[file.size() - i]);
  }
  constexpr std::size_t kMostGrowth = 1032;  // of deflate, by zlib's "Technical Details"
  if (length > kMostGrowth * file.size()) return Error("gunzip: the file is damaged");
  std::string bytes(length, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindowBits) != Z_OK) return Error("gunzip: zlib is out of memory");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(file.data()));  // zlib only reads it
  stream.avail_in = static_cast<uInt>(file.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  if (inflate(&stream, Z_FINISH) != Z_STREAM_END) return Error("gunzip: the file is damaged");
  return bytes;
}

}  // namespace gpumeter
