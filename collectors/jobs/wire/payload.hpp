#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

/// Splits the data of a socket into lines.
namespace gpumeter::jobs {

/// The longest datagram, frame or line. Datadog's agent reads 8 KiB.
inline constexpr std::size_t kMaxPayload = 65536;
/// The maximum number of lines in one payload; the rest is dropped. 8 KiB hold some 200 of the shortest
/// sensible lines.
inline constexpr std::size_t kMaxLines = 512;

/// The lines of one payload, without empty ones. No allocation, any thread.
class PayloadLines {
 public:
  constexpr explicit PayloadLines(std::string_view payload) noexcept : rest_(payload) {}
  std::optional<std::string_view> next() noexcept;

 private:
  std::string_view rest_;
};

/// Splits a stream into payloads: frames with a 32-bit little-endian length (Datadog), or plain lines
/// (pystatsd). The fourth byte identifies the framing, because it is 0 only in a length. Holds kMaxPayload
/// and four bytes. One per connection; not thread-safe.
///
///     read(fd, splitter.room()); splitter.received(n); while (auto payload = splitter.next()) ...
class StreamSplitter {
 public:
  enum class Framing : std::uint8_t { unknown, length, lines };

  /// `framing`: if it is known in advance, as for a file.
  explicit StreamSplitter(Framing framing = Framing::unknown);

  /// The buffer to read into. Never empty after next() has returned nullopt, unless broken().
  std::span<char> room() noexcept;
  void received(std::size_t bytes) noexcept { end_ += bytes; }
  /// Returns the next whole payload, valid until room() is called; nullopt if more bytes are needed. An
  /// incomplete payload at the end of a connection is dropped.
  std::optional<std::string_view> next() noexcept;
  /// The sender announced a frame over kMaxPayload, so the start of the next frame is unknown. The caller
  /// must close the connection.
  bool broken() const noexcept { return broken_; }
  /// The number of lines over kMaxPayload dropped so far.
  std::uint64_t overlong() const noexcept { return overlong_; }

 private:
  std::optional<std::string_view> next_frame() noexcept;
  std::optional<std::string_view> next_line() noexcept;
  std::string_view unread() const noexcept { return {buffer_.get() + begin_, end_ - begin_}; }

  std::unique_ptr<char[]> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t searched_ = 0;  ///< number of unread bytes known to contain no newline
  Framing framing_;
  bool skipping_ = false;  ///< inside a line over kMaxPayload
  bool broken_ = false;
  std::uint64_t overlong_ = 0;
};

}  // namespace gpumeter::jobs
