#include "collectors/jobs/wire/label_text.hpp"

#include <algorithm>

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

}  // namespace gpumeter::jobs
