#include "collectors/jobs/wire/line.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::jobs {
namespace {

std::string printable(std::string_view raw) {
  struct Range {
    char32_t first, last;
  };
  // C0, DEL and C1; zero-width and direction marks; line separators and embeddings; isolates; byte order
  // mark; interlinear annotation.
  constexpr Range kUnprintable[] = {{0, 0x1F},        {0x7F, 0x9F},     {0x200B, 0x200F}, {0x2028, 0x202E},
                                    {0x2066, 0x2069}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}};
  return readable(raw, [&](char32_t code) {
    return std::ranges::any_of(
        kUnprintable, [code](const Range& range) { return code >= range.first && code <= range.last; });
  });
}

/// Printable ASCII that needs no cut, as nearly all names are: no character has to be decoded.
bool is_plain(std::string_view raw) noexcept {
  return raw.size() <= kMaxLabelBytes &&
         std::ranges::all_of(raw, [](char each) { return each >= ' ' && each <= '~'; });
}

}  // namespace

std::string label_text(std::string_view raw) {
  if (is_plain(raw)) return std::string(raw);
  return std::string(first_bytes(printable(raw), kMaxLabelBytes));
}

std::string run_name_text(std::string_view raw) {
  if (is_plain(raw)) return std::string(raw);
  return shortened(printable(raw), kMaxLabelBytes, raw);
}

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

namespace {

bool is_name(std::string_view name) noexcept {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

std::optional<LineType> parse_type(std::string_view word) noexcept {
  constexpr EnumNames<LineType, 6> kTypes = {{{LineType::count, "c"},
                                              {LineType::gauge, "g"},
                                              {LineType::timer, "ms"},
                                              {LineType::histogram, "h"},
                                              {LineType::distribution, "d"},
                                              {LineType::set, "s"}}};
  return kTypes.find(word);
}

std::optional<double> parse_rate(std::string_view text) noexcept {
  const std::optional<double> rate = parse_value(text);
  return rate && *rate >= kMinRate && *rate <= 1 ? rate : std::nullopt;
}

/// Parses one of the fields after the type; returns false if it is invalid.
bool parse_field(std::string_view field, MetricLine& line) noexcept {
  if (field.starts_with('#')) {
    line.tags = Tags(field.substr(1));
    return !line.tags.too_many();
  }
  if (field.starts_with('T')) {
    line.timestamp = parse_number<std::int64_t>(field.substr(1));
    return line.timestamp.has_value();
  }
  return true;  // a field of a later protocol
}

Line parse_metric(std::string_view text) noexcept {
  MetricLine line;
  line.name = take_until(text, ':');
  line.values = PackedValues(take_until(text, '|'));
  const std::optional<LineType> type = parse_type(take_until(text, '|'));
  if (!is_name(line.name) || line.values.text().empty() || !type) return Refusal::malformed;
  line.type = *type;
  while (!text.empty()) {
    const std::string_view field = take_until(text, '|');
    if (field.starts_with('@')) {
      const std::optional<double> rate = parse_rate(field.substr(1));
      if (!rate) return Refusal::bad_value;
      line.rate = *rate;
    } else if (!parse_field(field, line)) {
      return Refusal::malformed;
    }
  }
  return line;
}

/// Splits by the announced lengths, because title and text may contain `|`.
Line parse_event(std::string_view text) noexcept {
  text.remove_prefix(3);  // "_e{"
  const auto title_size = parse_number<std::size_t>(take_until(text, ','));
  const auto text_size = parse_number<std::size_t>(take_until(text, '}'));
  if (!title_size || !text_size || !text.starts_with(':')) return Refusal::malformed;
  text.remove_prefix(1);
  if (*title_size >= text.size() || text[*title_size] != '|') return Refusal::malformed;
  EventLine event{text.substr(0, *title_size), {}, {}, {}, {}};
  text.remove_prefix(*title_size + 1);
  if (*text_size > text.size()) return Refusal::malformed;
  event.text = text.substr(0, *text_size);
  text.remove_prefix(*text_size);
  if (!text.empty() && text.front() != '|') return Refusal::malformed;
  while (!text.empty()) {
    const std::string_view field = take_until(text, '|');
    if (field.starts_with('#')) event.tags = Tags(field.substr(1));
    if (field.starts_with("d:")) event.timestamp = parse_number<std::int64_t>(field.substr(2));
    if (field.starts_with("ms:")) {
      constexpr unsigned kMost = 999;
      event.milliseconds = std::min(parse_number<unsigned>(field.substr(3)).value_or(0), kMost);
    }
  }
  return event.tags.too_many() ? Line(Refusal::malformed) : Line(event);
}

}  // namespace

std::optional<Tag> Tags::next() noexcept {
  while (!text_.empty()) {
    std::string_view value = take_until(text_, ',');
    if (value.empty()) continue;
    const std::string_view key = take_until(value, ':');
    return Tag{key, value};
  }
  return std::nullopt;
}

std::string_view Tags::find(std::string_view key) const noexcept {
  Tags rest = *this;
  while (const std::optional<Tag> tag = rest.next()) {
    if (tag->key == key && !tag->value.empty()) return tag->value;
  }
  return {};
}

bool Tags::too_many() const noexcept {
  return static_cast<std::size_t>(std::ranges::count(text_, ',')) >= kMaxTags;
}

Trace trace_of(const Tags& tags) noexcept {
  constexpr std::size_t kTraceDigits = 32, kSpanDigits = 16;
  const auto identifier = [&](std::string_view key, std::size_t digits) -> std::string_view {
    const std::string_view text = tags.find(key);
    const bool is_hex = text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    const bool is_zero = text.find_first_not_of('0') == std::string_view::npos;  // "invalid" in W3C's words
    return text.size() == digits && is_hex && !is_zero ? text : std::string_view();
  };
  const std::string_view trace = identifier("trace_id", kTraceDigits);
  if (trace.empty()) return {};
  return {trace, identifier("span_id", kSpanDigits)};
}

std::optional<std::optional<double>> PackedValues::next() noexcept {
  while (!text_.empty()) {
    const std::string_view value = take_until(text_, ':');
    if (!value.empty()) return parse_value(value);
  }
  return std::nullopt;
}

bool is_acceptable(double value) noexcept { return std::isfinite(value) && std::abs(value) <= kMaxValue; }

std::optional<double> parse_value(std::string_view text) noexcept {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const std::optional<double> number = parse_number<double>(text);
  return number && is_acceptable(*number) ? number : std::nullopt;
}

std::size_t lines_in(std::string_view line) noexcept {
  if (line.starts_with("_e{") || line.starts_with("_sc|")) return 1;
  const std::string_view values = line.substr(0, line.find('|'));
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::ranges::count(values, ':')));
}

Line parse_line(std::string_view line) noexcept {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with("_e{")) return parse_event(line);
  if (line.starts_with("_sc|")) return IgnoredLine{};
  if (line.starts_with("datadog.dogstatsd.client.")) return IgnoredLine{};
  return parse_metric(line);
}

}  // namespace gpumeter::jobs
