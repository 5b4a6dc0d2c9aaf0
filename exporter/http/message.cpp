#include "exporter/http/message.hpp"

#include <microhttpd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "exporter/http/negotiation.hpp"

namespace gpumeter {
namespace {

constexpr Refusal kBadLine{400, "The request line is malformed.\n"};
constexpr Refusal kBadHeader{400, "A header is malformed.\n"};
constexpr Refusal kNotOneHost{400, "Exactly one Host header is required.\n"};

/// The library decodes it, and its strings then end there.
constexpr const char* kEscapedNul = "%00";

/// In later versions the library itself refuses a NUL, and its strings may lie anywhere.
constexpr bool kIsOneBuffer = MHD_VERSION < 0x01000000;

/// What a byte may be part of.
struct Grammar {
  bool token : 1;  ///< RFC 9110 section 5.6.2
  bool value : 1;  ///< RFC 9110 section 5.5; bytes above ASCII are allowed
};

/// A table, because every byte of every request's headers is looked up.
constexpr std::array<Grammar, 256> kGrammar = [] {
  constexpr std::string_view kSeparators = "\"(),/:;<=>?@[\\]{} ";
  std::array<Grammar, 256> grammar{};
  for (std::size_t c = 0; c < grammar.size(); ++c) {
    const bool is_control = c < 0x20 || c == 0x7f;
    const bool is_separator = kSeparators.find(static_cast<char>(c)) != std::string_view::npos;
    grammar[c] = {!is_control && !is_separator && c < 0x80, !is_control || c == '\t'};
  }
  return grammar;
}();

Grammar grammar_of(char c) noexcept { return kGrammar[static_cast<unsigned char>(c)]; }

bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return grammar_of(c).token; });
}

bool is_value(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return grammar_of(c).value; });
}

const char* end_of(const char* text) noexcept { return text + std::strlen(text); }

struct Headers {
  const char* end;              ///< of the text before the next header
  std::ptrdiff_t line_end = 0;  ///< bytes of each line's end; 0: no header yet
  bool are_good = true;
  bool announce_body = false;
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

bool announces_body(std::string_view name) noexcept {
  return equals_ignoring_case(name, "Content-Length") || equals_ignoring_case(name, "Transfer-Encoding");
}

/// The library calls this for each header in the order of the request. It found the lengths by the strings'
/// first NULs.
// NOLINTNEXTLINE(readability-function-size): the library's parameters
MHD_Result check_header(void* to, MHD_ValueKind, const char* name_text, std::size_t name_size,
                        const char* value_text, std::size_t value_size) noexcept {
  auto& headers = *static_cast<Headers*>(to);
  if (value_text == kNoBody) return MHD_YES;
  const std::string_view name(name_text, name_size);
  const std::string_view value(value_text, value_text == nullptr ? 0 : value_size);
  headers.are_good = value_text != nullptr && (!kIsOneBuffer || follows(name_text, headers)) &&
                     is_token(name) && is_value(value);
  if (!headers.are_good) return MHD_NO;
  headers.hosts += equals_ignoring_case(name, "Host") ? 1U : 0U;
  headers.announce_body = headers.announce_body || announces_body(name);
  headers.end = value.data() + value.size();
  return MHD_YES;
}

}  // namespace

const Refusal* malformed_line(const char* uri) noexcept {
  constexpr std::string_view kVersion = "HTTP/";
  const bool is_good =
      is_value(uri) && std::strpbrk(uri, " \t") == nullptr && std::strstr(uri, kEscapedNul) == nullptr;
  const char* const next = end_of(uri) + 1;
  const bool is_whole = !kIsOneBuffer || std::strncmp(next, kVersion.data(), kVersion.size()) == 0;
  return is_good && is_whole ? nullptr : &kBadLine;
}

HeaderCheck check_headers(MHD_Connection* connection, const char* version) noexcept {
  Headers headers{.end = end_of(version)};
  MHD_get_connection_values_n(connection, MHD_HEADER_KIND, check_header, &headers);
  if (!headers.are_good || (kIsOneBuffer && !end_well(headers))) return {&kBadHeader, true};
  const bool needs_host = std::string_view(version) == MHD_HTTP_VERSION_1_1;
  const bool has_one_host = headers.hosts == 1 || (headers.hosts == 0 && !needs_host);
  return {has_one_host ? nullptr : &kNotOneHost, headers.announce_body};
}

}  // namespace gpumeter
