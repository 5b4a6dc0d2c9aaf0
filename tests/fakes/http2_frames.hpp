#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

/// Frames of HTTP/2 as a server sends them (RFC 9113), for tests of clients.
namespace gpumeter::http2 {

inline std::string frame(char type, char flags, std::uint32_t stream, std::string_view payload) {
  std::string bytes;
  for (const unsigned shift : {16U, 8U, 0U}) bytes += static_cast<char>((payload.size() >> shift) & 0xFFU);
  bytes += type;
  bytes += flags;
  for (const unsigned shift : {24U, 16U, 8U, 0U}) bytes += static_cast<char>((stream >> shift) & 0xFFU);
  return bytes.append(payload);
}

/// A header without the dynamic table and without Huffman's code (RFC 7541, 6.2.2). Names and values up to
/// 126 bytes.
inline std::string header(std::string_view name, std::string_view value) {
  std::string bytes(1, '\0');
  for (const std::string_view text : {name, value}) (bytes += static_cast<char>(text.size())).append(text);
  return bytes;
}

inline const std::string kStatus200 = "\x88";  // of the static table
inline std::string settings() { return frame(4, 0, 0, ""); }
inline std::string headers() {
  return frame(1, 4, 1, kStatus200 + header("content-type", "application/grpc"));
}
inline std::string trailers(std::string_view status, std::string_view message = "") {
  return frame(1, 5, 1, header("grpc-status", status) + header("grpc-message", message));
}
inline std::string trailers_only(std::string_view status, std::string_view message = "") {
  return frame(1, 5, 1, kStatus200 + header("grpc-status", status) + header("grpc-message", message));
}
inline std::string prefixed(std::string_view message) {
  std::string bytes(1, '\0');
  for (const unsigned shift : {24U, 16U, 8U, 0U})
    bytes += static_cast<char>((message.size() >> shift) & 0xFFU);
  return bytes.append(message);
}
// Not `data`: std::data() would be found for a std::string.
inline std::string data_frame(std::string_view bytes) { return frame(0, 0, 1, bytes); }

}  // namespace gpumeter::http2
