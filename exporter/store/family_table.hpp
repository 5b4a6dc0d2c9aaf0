#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/store/format.hpp"
#include "exporter/store/line_block.hpp"

namespace gpumeter {

/// The order of a page: families by name, and within one the lines of all blocks by device index, then
/// age of the block, then slot. Arranged when blocks come and go, so that rendering is one straight walk.
/// Guarded by the registry that owns it.
class FamilyTable {
 public:
  /// The block stays where it is until remove().
  void add(const LineBlock& block);
  void remove(const LineBlock& block);

  /// Appends every line whose block is visible and selected and whose sample is ok. A family without one
  /// is not mentioned.
  void render(Format format, std::string& out) const;

 private:
  struct Line {
    std::string_view prefix;
    const LineBlock* block;
    std::size_t slot;
    bool shadowed;  ///< a younger block has the same series
  };
  struct Family {
    std::array<std::string, kFormatCount> headers;
    std::vector<Line> lines;
  };

  static void arrange(Family& family);
  static void shadow_duplicates(Family& family);
  static void render(const Family& family, Format format, std::string& out);

  std::map<std::string_view, Family> families_;  ///< keys are the descriptors' names, which never go
};

}  // namespace gpumeter
