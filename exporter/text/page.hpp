#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "exporter/text/format.hpp"
#include "exporter/text/view.hpp"

namespace gpumeter {

/// The bytes that one scrape receives. Immutable; connections share the page while they send it.
struct Page {
  std::string bytes;
  Format format;
  Encoding encoding;
  std::uint64_t generation;  ///< of the store
  Nanoseconds rendered_at;   ///< CLOCK_MONOTONIC
};
using PagePtr = std::shared_ptr<const Page>;

/// A page with this text, in the requested encoding, or in identity if compression fails.
PagePtr make_page(Rendered rendered, Format format, Encoding encoding);

/// Which series a page has.
enum class PageDetail : std::uint8_t {
  configured,  ///< those of the selection
  standard,    ///< of the same selection with detail `standard`
  full,        ///< of the same selection with detail `full`
};

/// The current page in each detail, format and encoding: the first scrape after a commit renders it, later
/// scrapes reuse it. A page with a long text is rendered once a second at most. Any thread. A scrape waits
/// for one render at most. If a render is under way, the scrape takes that page, even if a commit followed
/// the start of the render.
class PageCache {
 public:
  /// Bytes of a text that is long: rendering it takes 1 ms, and compressing it 3 ms.
  static constexpr std::size_t kLong = std::size_t{1} << 20;
  /// The age up to which a long page is served again: the shortest sampling interval.
  static constexpr Nanoseconds kRecent = std::chrono::seconds(1);

  explicit PageCache(const Store& store) : store_(store), standard_(store), full_(store) {
    select({.detail = MetricsDetail::full});
  }

  /// Replaces the selection of series, for the next page on. Waits for a render.
  void select(PageSelection selection);

  /// True unless the text of the last configured page was long.
  bool is_short() noexcept { return level(PageDetail::configured).length <= kLong; }
  /// True if the configured page is there.
  bool is_ready(Format format, Encoding encoding);
  /// The page in the requested encoding, or in identity if compression fails. With an `age`, the last page if
  /// it is at most so old: for times when pages take too much memory, because each new page stays in memory
  /// until its slowest reader has it.
  PagePtr page(Format format, Encoding encoding, PageDetail detail = PageDetail::configured,
               Nanoseconds age = {});
  /// Renders a page for this one request; the page is not cached.
  PagePtr filtered(Format format, Encoding encoding, const Filter& filter,
                   PageDetail detail = PageDetail::configured);

 private:
  struct Slot {
    PagePtr load() const;
    void store(PagePtr next);

    Mutex rendering;  ///< held by the thread that renders
    mutable Mutex mutex;
    PagePtr page GPUMETER_GUARDED_BY(mutex);
  };

  /// The pages of one level. Takes no memory to speak of before its first page.
  struct Level {
    explicit Level(const Store& store) : view(store) {}
    Slot& slot(Format format, Encoding encoding) noexcept {
      return slots[static_cast<std::size_t>(format)][static_cast<std::size_t>(encoding)];
    }
    void select(PageSelection selection);

    TextView view;
    std::atomic<std::size_t> length = 0;  ///< bytes of the last text
    std::array<std::array<Slot, kEncodingCount>, kFormatCount> slots = {};
  };

  Level& level(PageDetail detail) noexcept;
  bool is_current(const Level& level, const PagePtr& page, Nanoseconds age) const;

  const Store& store_;
  std::atomic<bool> is_full_{true};  ///< of the selection
  Level standard_;
  Level full_;
};

}  // namespace gpumeter
