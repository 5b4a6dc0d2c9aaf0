#pragma once

struct MHD_Connection;

/// Requests that libmicrohttpd 0.9.75 accepts although a proxy may read them differently. All of them are
/// answered 400, and the connection closes. Any HTTP thread.
///
/// The library ends each string at its first NUL and reports no length, so a NUL is found by the distance to
/// the next string. Two cases stay unseen: a NUL at the very end of the last header, and a last header that
/// alone ends with LF. An empty line that alone ends with LF is found unless the byte after it, which is left
/// from an earlier request, is 0. Other line ends of both kinds in one request are malformed.
///
/// The library's own strictness (MHD_OPTION_STRICT_FOR_CLIENT) stays at its default: at 1 it answers a
/// missing Host itself, without the configured headers, and closes without an answer for a space in the
/// target; at -1 it answers a space before a colon itself.
namespace gpumeter {

/// The answer to a request that is rejected before its arguments are parsed.
struct Refusal {
  unsigned status;
  const char* text;
};

/// The Content-Length added to each request before its client's headers; recognised by its address.
inline constexpr char kNoBody[] = "0";

/// A space, a control character or a NUL in the target, also "%00". `uri` is the text in the library's
/// buffer.
const Refusal* malformed_line(const char* uri) noexcept;

/// A header whose name is no token (such as "Content-Length "), a NUL or control character in a value, a
/// folded line, different line ends, more than one Host, or none in HTTP/1.1.
struct HeaderCheck {
  const Refusal* refusal;  ///< null: the headers are well formed
  bool announce_body;      ///< of well-formed headers: a Content-Length or a Transfer-Encoding
};
HeaderCheck check_headers(MHD_Connection* connection, const char* version) noexcept;

}  // namespace gpumeter
