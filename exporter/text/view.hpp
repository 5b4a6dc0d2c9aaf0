#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "exporter/store/store.hpp"
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
  explicit TextView(const Store& store);
  /// The same for the clock.
  TextView(const Store& store, const Clock& clock);
  ~TextView();

  /// The current page. A family is omitted if none of its series has a value. An OpenMetrics page includes
  /// its `# EOF`. In protobuf, the page is a sequence of messages io.prometheus.client.MetricFamily, each
  /// after its length (https://github.com/prometheus/client_model, io/prometheus/client/metrics.proto):
  /// unlike the text formats, it has the start time of a counter where Prometheus reads it.
  Rendered render(Format format, const Filter& filter = {}) GPUMETER_EXCLUDES(mutex_);

  /// Replaces the selection, which is the full page at first. Waits for a render.
  void select(PageSelection selection) GPUMETER_EXCLUDES(mutex_);

 private:
  struct FamilyText;

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
