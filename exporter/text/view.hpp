#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "exporter/store/store.hpp"
#include "exporter/text/family_series.hpp"
#include "exporter/text/filter.hpp"
#include "exporter/text/format.hpp"
#include "exporter/text/selection.hpp"

namespace gpumeter {

/// A page's bytes and the generation of the store that it shows.
struct Rendered {
  std::string text;
  std::uint64_t generation = 0;
};

/// Renders the store as a page for Prometheus. Caches the bytes before each line's number until the family's
/// list of series changes. Any thread; one render at a time.
class TextView {
 public:
  /// The store must outlive the view.
  explicit TextView(const Store& store) : TextView(store, system_) {}
  /// The same for the clock.
  TextView(const Store& store, const Clock& clock) : store_(store), clock_(clock) {}

  /// The current page. A family is omitted if none of its series has a value. An OpenMetrics page includes
  /// its `# EOF`.
  Rendered render(Format format, const Filter& filter = {}) GPUMETER_EXCLUDES(mutex_);

  /// Replaces the selection, which is the full page at first. Waits for a render.
  void select(PageSelection selection) GPUMETER_EXCLUDES(mutex_);

 private:
  class CollectorChoice;
  struct Request;
  /// The bytes before the number of each series of a list, by position.
  struct Prefixes {
    std::string bytes = {};                ///< of all series, concatenated
    std::vector<std::uint32_t> ends = {};  ///< end of each one

    /// Calls make(labels, part, bytes), which appends those of one series.
    template <class Make>
    void renew(const Family& family, const FamilySeries& series, Make&& make);
    std::string_view operator[](std::size_t position) const noexcept;
  };
  /// A family's selected series, and the bytes that stay the same from page to page.
  struct FamilyText {
    FamilySeries series = {};
    std::array<std::string, kFormatCount> headers = {};
    Prefixes lines = {};
    Prefixes messages = {};  ///< the labels of each series in protobuf; empty until a page needs them

    /// Appends the family's series on the page, below its header.
    void append(const Family& family, Request& request, std::string& out);
    void append_lines(const Family& family, Request& request, std::string& out);
    void append_message(const Family& family, Request& request, std::string& out);
    const std::string& header(const MetricDescriptor& family, Format format);
  };

  const SystemClock system_;
  const Store& store_;
  const Clock& clock_;
  Mutex mutex_;  // locked before the store's mutex
  PageSelection selection_ GPUMETER_GUARDED_BY(mutex_){.detail = MetricsDetail::full};
  std::uint64_t selected_ GPUMETER_GUARDED_BY(mutex_) = 1;        // grows with each selection
  std::vector<FamilyText> families_ GPUMETER_GUARDED_BY(mutex_);  // by Family::id()
  /// Length of the last page of each format. The next page is hardly longer, so one allocation suffices.
  std::array<std::size_t, kFormatCount> last_size_ GPUMETER_GUARDED_BY(mutex_) = {};
};

}  // namespace gpumeter
