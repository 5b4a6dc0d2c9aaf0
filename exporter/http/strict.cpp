#include "exporter/http/strict.hpp"

#include <microhttpd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "exporter/http/negotiation/accept_header.hpp"

namespace gpumeter {
namespace {

constexpr Refusal kBadLine{400, "The request line is malformed.\n"};
constexpr Refusal kBadHeader{400, "A header is malformed.\n"};
constexpr Refusal kNotOneHost{400, "Exactly one Host header is required.\n"};

/// In later versions the library itself refuses a NUL, and its strings may lie anywhere.
constexpr bool kIsOneBuffer = MHD_VERSION < 0x01000000;

bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

/// RFC 9110 section 5.6.2.
bool is_token(std::string_view text) noexcept {
  constexpr std::string_view kSeparators = "\"(),/:;<=>?@[\\]{} ";
  const auto is_bad = [](char c) { return is_control(c) || static_cast<unsigned char>(c) > 0x7f; };
  return !text.empty() && text.find_first_of(kSeparators) == std::string_view::npos &&
         std::ranges::none_of(text, is_bad);
}

/// RFC 9110 section 5.5; bytes above ASCII are allowed.
bool is_value(std::string_view text) noexcept {
  return std::ranges::none_of(text, [](char c) { return is_control(c) && c != '\t'; });
}

const char* end_of(const char* text) noexcept { return text + std::strlen(text); }

struct Headers {
  const char* end;              ///< of the text before the next header
  std::ptrdiff_t line_end = 0;  ///< bytes of each line's end; 0: no header yet
  bool are_good = true;
  unsigned hosts = 0;
};

/// The library replaces the end of a line by NULs: two, or one for clients that end lines with LF alone.
bool follows(const char* line, Headers& headers) noexcept {
  const std::ptrdiff_t gap = line - headers.end;
  const bool is_first = headers.line_end == 0 && (gap == 1 || gap == 2);
  if (is_first) headers.line_end = gap;
  return is_first || gap == headers.line_end;
}

/// After the last header come the ends of its line and of the empty line.
bool end_well(const Headers& headers) noexcept {
  const std::ptrdiff_t size = 2 * std::max(headers.line_end, std::ptrdiff_t{1});
  return std::all_of(headers.end, headers.end + size, [](char c) { return c == '\0'; });
}

/// The library calls this for each header in the order of the request.
MHD_Result check_header(void* to, MHD_ValueKind, const char* name, const char* value) noexcept {
  auto& headers = *static_cast<Headers*>(to);
  if (value == kNoBody) return MHD_YES;
  headers.are_good =
      value != nullptr && (!kIsOneBuffer || follows(name, headers)) && is_token(name) && is_value(value);
  if (!headers.are_good) return MHD_NO;
  headers.hosts += equals_ignoring_case(name, "Host") ? 1U : 0U;
  headers.end = end_of(value);
  return MHD_YES;
}

}  // namespace

const Refusal* malformed_line(const char* uri) noexcept {
  constexpr std::string_view kVersion = "HTTP/";
  const bool is_good = is_value(uri) && std::strpbrk(uri, " \t") == nullptr;
  const char* const next = end_of(uri) + 1;
  const bool is_whole = !kIsOneBuffer || std::strncmp(next, kVersion.data(), kVersion.size()) == 0;
  return is_good && is_whole ? nullptr : &kBadLine;
}

const Refusal* malformed_headers(MHD_Connection* connection, const char* version) noexcept {
  Headers headers{.end = end_of(version)};
  MHD_get_connection_values(connection, MHD_HEADER_KIND, check_header, &headers);
  if (!headers.are_good || (kIsOneBuffer && !end_well(headers))) return &kBadHeader;
  const bool needs_host = std::string_view(version) == MHD_HTTP_VERSION_1_1;
  return headers.hosts > 1 || (needs_host && headers.hosts == 0) ? &kNotOneHost : nullptr;
}

}  // namespace gpumeter
