#include "collectors/jobs/wire/payload.hpp"

#include <algorithm>
#include <cstring>

namespace gpumeter::jobs {
namespace {

constexpr std::size_t kLengthBytes = 4;
constexpr std::size_t kBufferBytes = kMaxPayload + kLengthBytes;

std::size_t length_of(std::string_view header) noexcept {
  std::size_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8U | static_cast<unsigned char>(header[i]);
  return length;
}

}  // namespace

std::optional<std::string_view> PayloadLines::next() noexcept {
  while (!rest_.empty()) {
    const std::size_t at = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, at);
    rest_.remove_prefix(std::min(at + 1, rest_.size()));
    if (!line.empty()) return line;
  }
  return std::nullopt;
}

StreamSplitter::StreamSplitter(Framing framing)
    : buffer_(std::make_unique_for_overwrite<char[]>(kBufferBytes)), framing_(framing) {}

std::span<char> StreamSplitter::room() noexcept {
  if (broken_) return {};
  std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  return {buffer_.get() + end_, kBufferBytes - end_};
}

std::optional<std::string_view> StreamSplitter::next() noexcept {
  if (broken_) return std::nullopt;
  if (framing_ == Framing::unknown) {
    if (end_ - begin_ < kLengthBytes) return std::nullopt;
    framing_ = unread()[3] == '\0' ? Framing::length : Framing::lines;
  }
  return framing_ == Framing::length ? next_frame() : next_line();
}

std::optional<std::string_view> StreamSplitter::next_frame() noexcept {
  const std::string_view bytes = unread();
  if (bytes.size() < kLengthBytes) return std::nullopt;
  const std::size_t length = length_of(bytes);
  broken_ = length > kMaxPayload;
  if (broken_ || bytes.size() - kLengthBytes < length) return std::nullopt;
  begin_ += kLengthBytes + length;
  return bytes.substr(kLengthBytes, length);
}

std::optional<std::string_view> StreamSplitter::next_line() noexcept {
  while (true) {
    const std::string_view bytes = unread();
    const std::size_t at = bytes.find('\n', searched_);
    if (at == std::string_view::npos) break;
    begin_ += at + 1;
    searched_ = 0;
    if (at > kMaxPayload && !skipping_) ++overlong_;
    const bool taken = !skipping_ && at > 0 && at <= kMaxPayload;
    skipping_ = false;
    if (taken) return bytes.substr(0, at);
  }
  searched_ = end_ - begin_;
  if (searched_ > kMaxPayload) {
    if (!skipping_) ++overlong_;
    skipping_ = true;
  }
  if (skipping_) {
    begin_ = end_;
    searched_ = 0;
  }
  return std::nullopt;
}

}  // namespace gpumeter::jobs
