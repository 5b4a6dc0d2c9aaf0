#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/api/descriptor.hpp"
#include "exporter/store/frame.hpp"

namespace gpumeter {

/// Sample lines that come and go together: one device's, or one SeriesSet's. What precedes the numbers is
/// built once and never changes; the numbers lie in a frame. Guarded by the registry that owns it.
class LineBlock {
 public:
  /// `age` orders blocks by when they were attached; where two hold the same series, the younger shows it.
  LineBlock(std::string_view collector, std::uint64_t age, std::size_t lines);

  /// The next slot's line; the registry calls it once for each slot of the frame. `suffix`: see SeriesSet.
  void add(const MetricDescriptor& family, std::string_view labels, unsigned order,
           std::string_view suffix = {});

  std::size_t size() const noexcept { return lines_.size(); }
  const MetricDescriptor& family(std::size_t slot) const noexcept { return *lines_[slot].family; }
  unsigned order(std::size_t slot) const noexcept { return lines_[slot].order; }
  /// `name{labels} `; valid as long as the block.
  std::string_view prefix(std::size_t slot) const noexcept;
  std::string_view collector() const noexcept { return collector_; }
  std::uint64_t age() const noexcept { return age_; }
  bool same_lines(const LineBlock& other) const noexcept { return prefixes_ == other.prefixes_; }
  /// Whether the slot's line is this one, without making it.
  bool is_line(std::size_t slot, const MetricDescriptor& family, std::string_view labels,
               std::string_view suffix) const noexcept;

  Frame frame;
  bool visible = false;   ///< since its first commit, until hidden
  bool selected = false;  ///< by the filter of the page being rendered

 private:
  struct Line {
    const MetricDescriptor* family;
    unsigned order;
    std::uint32_t end;  ///< of its prefix; it begins where the one before ends
  };

  std::string collector_;
  std::uint64_t age_;
  std::string prefixes_;
  std::vector<Line> lines_;
};

}  // namespace gpumeter
