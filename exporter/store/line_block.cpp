#include "exporter/store/line_block.hpp"

#include "exporter/store/syntax.hpp"

namespace gpumeter {

LineBlock::LineBlock(std::string_view collector, std::uint64_t age, std::size_t lines)
    : frame(lines), collector_(collector), age_(age) {
  lines_.reserve(lines);
}

void LineBlock::add(const MetricDescriptor& family, std::string_view labels, unsigned order,
                    std::string_view suffix) {
  prefixes_ += line_prefix(family, suffix, labels);
  lines_.push_back({&family, order, static_cast<std::uint32_t>(prefixes_.size())});
}

std::string_view LineBlock::prefix(std::size_t slot) const noexcept {
  const std::size_t begin = slot == 0 ? 0 : lines_[slot - 1].end;
  return std::string_view(prefixes_).substr(begin, lines_[slot].end - begin);
}

bool LineBlock::is_line(std::size_t slot, const MetricDescriptor& family, std::string_view labels,
                        std::string_view suffix) const noexcept {
  return lines_[slot].family == &family && is_line_prefix(prefix(slot), family, suffix, labels);
}

}  // namespace gpumeter
