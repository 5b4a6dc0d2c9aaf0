#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/mutex.hpp"
#include "collectors/api/series.hpp"
#include "exporter/store/family_table.hpp"
#include "exporter/store/filter.hpp"
#include "exporter/store/format.hpp"
#include "exporter/store/frame.hpp"
#include "exporter/store/label_block.hpp"
#include "exporter/store/line_block.hpp"
#include "exporter/store/series_set.hpp"

namespace gpumeter {

/// One device's series in the registry. Never given to another.
enum class SourceId : std::uint64_t {};

/// A page's text and the state it shows.
struct Rendered {
  std::string text;
  std::uint64_t generation;
};

/// All series of the page, from all collectors. Any thread, at any time. The mutex is held for the copy of
/// a frame or for one walk over the lines, never for a driver call or a system call.
class Registry {
 public:
  /// Builds and escapes the lines of `series` in front of their numbers, once. They are on the page from
  /// the first commit on.
  SourceId attach(std::string_view collector, const LabelBlock& labels, std::span<const SeriesSpec> series);
  /// Copies the frame's values; never allocates. A source that was detached (a lane that was given up and
  /// came back late) is ignored.
  void commit(SourceId id, const Frame& frame) noexcept;
  /// The same, together with the series that come and go on this device (who uses it): no page shows the
  /// one without the other. Allocates only where `set` has other lines than the last one.
  void commit(SourceId id, const Frame& frame, const SeriesSet& set);
  /// Takes the lines, those of the set as well, off the page until the next commit.
  void hide(SourceId id) noexcept;
  void detach(SourceId id);

  /// Replaces what was published under this name; an empty set takes it away. Cheap where only values
  /// changed.
  void publish(std::string_view set_name, const SeriesSet& set);

  /// Grows with every change of what a page would show.
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  /// The page as of now: families sorted by name, over all collectors. OpenMetrics includes its `# EOF`.
  Rendered render(Format format, const Filter& filter = {}) const;

 private:
  struct Source {
    std::unique_ptr<LineBlock> lines;
    std::unique_ptr<LineBlock> set;  ///< null: it was never committed with one
  };

  Source* find(SourceId id) noexcept GPUMETER_REQUIRES(mutex_);
  bool commit_values(SourceId id, const Frame& frame, const SeriesSet& set) noexcept
      GPUMETER_EXCLUDES(mutex_);
  static bool show(LineBlock& block, const Frame& frame) noexcept;
  void changed() noexcept GPUMETER_REQUIRES(mutex_) { generation_.fetch_add(1, std::memory_order_release); }
  void replace(std::unique_ptr<LineBlock>& place, std::unique_ptr<LineBlock> block) GPUMETER_REQUIRES(mutex_);

  std::atomic<std::uint64_t> ages_{0};
  std::atomic<std::uint64_t> generation_{0};

  mutable Mutex mutex_;
  std::map<SourceId, Source> sources_ GPUMETER_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<LineBlock>, std::less<>> sets_ GPUMETER_GUARDED_BY(mutex_);
  FamilyTable families_ GPUMETER_GUARDED_BY(mutex_);
  /// Length of the last page of each format: the next one is hardly longer, and is built in one allocation.
  mutable std::array<std::size_t, kFormatCount> last_size_ GPUMETER_GUARDED_BY(mutex_) = {};
};

}  // namespace gpumeter
