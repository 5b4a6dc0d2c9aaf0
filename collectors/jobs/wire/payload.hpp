#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

/// How lines come off a socket.
namespace gpumeter::jobs {

/// The longest datagram, frame or line. Datadog's agent reads 8 KiB.
inline constexpr std::size_t kMaxPayload = 65536;
/// Lines of one payload; the rest is dropped. 8 KiB hold some 200 of the shortest sensible lines.
inline constexpr std::size_t kMaxLines = 512;

/// The lines of one payload. Empty ones are passed over. No allocation, any thread.
class PayloadLines {
 public:
  constexpr explicit PayloadLines(std::string_view payload) noexcept : rest_(payload) {}
  std::optional<std::string_view> next() noexcept;

 private:
  std::string_view rest_;
};

/// Cuts a stream into payloads: frames of a 32-bit little-endian length (Datadog), or plain lines
/// (pystatsd). The fourth byte decides, which is 0 only in a length. Holds kMaxPayload and four bytes. One
/// per connection; not thread-safe.
///
///     read(fd, splitter.room()); splitter.received(n); while (auto payload = splitter.next()) ...
class StreamSplitter {
 public:
  enum class Framing : std::uint8_t { unknown, length, lines };

  /// `framing`: if it is known, as for a file.
  explicit StreamSplitter(Framing framing = Framing::unknown);

  /// Where to read to; never empty once next() gave nullopt, unless broken().
  std::span<char> room() noexcept;
  void received(std::size_t bytes) noexcept { end_ += bytes; }
  /// The next whole payload, valid until room() is called; nullopt: more bytes are needed. A torn payload at
  /// the end of a connection is dropped.
  std::optional<std::string_view> next() noexcept;
  /// The sender announced a frame over kMaxPayload, so the start of the next is unknown. Close the
  /// connection.
  bool broken() const noexcept { return broken_; }
  /// Lines over kMaxPayload, dropped so far.
  std::uint64_t overlong() const noexcept { return overlong_; }

 private:
  std::optional<std::string_view> next_frame() noexcept;
  std::optional<std::string_view> next_line() noexcept;
  std::string_view unread() const noexcept { return {buffer_.get() + begin_, end_ - begin_}; }

  std::unique_ptr<char[]> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t searched_ = 0;  ///< of the unread bytes, those known to hold no newline
  Framing framing_;
  bool skipping_ = false;  ///< inside a line that is too long
  bool broken_ = false;
  std::uint64_t overlong_ = 0;
};

}  // namespace gpumeter::jobs
