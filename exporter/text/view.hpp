#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "exporter/store/store.hpp"
#include "exporter/text/filter.hpp"
#include "exporter/text/format.hpp"

namespace gpumeter {

/// A page's text and the generation of the store that it shows.
struct Rendered {
  std::string text;
  std::uint64_t generation = 0;
};

/// Renders the store as Prometheus text. Caches the text before each line's number until the family's list of
/// series changes. Any thread; one render at a time.
class TextView {
 public:
  /// The store must outlive the view.
  explicit TextView(const Store& store) : store_(store) {}

  /// The current page. A family is omitted if none of its series has a value. An OpenMetrics page includes
  /// its `# EOF`.
  Rendered render(Format format, const Filter& filter = {}) GPUMETER_EXCLUDES(mutex_);

 private:
  class Selection;
  /// The text of a family that stays the same from page to page.
  struct FamilyText {
    std::array<std::string, kFormatCount> headers = {};
    std::uint64_t version = 0;
    std::string prefixes = {};             ///< of all lines, concatenated
    std::vector<std::uint32_t> ends = {};  ///< end of each line's prefix

    /// Appends the selected series below the family's header.
    void append(const Family& family, Format format, Selection& selection, std::string& out);
    void refresh(const Family& family);
    const std::string& header(const MetricDescriptor& family, Format format);
    std::string_view prefix(std::size_t line) const noexcept;
  };

  const Store& store_;
  Mutex mutex_;                                                   // locked before the store's mutex
  std::vector<FamilyText> families_ GPUMETER_GUARDED_BY(mutex_);  // by Family::id()
  /// Length of the last page of each format. The next page is hardly longer, so one allocation suffices.
  std::array<std::size_t, kFormatCount> last_size_ GPUMETER_GUARDED_BY(mutex_) = {};
};

}  // namespace gpumeter
