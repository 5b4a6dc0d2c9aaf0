#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "exporter/text/format.hpp"
#include "exporter/text/view.hpp"

namespace gpumeter {

/// The bytes that one scrape receives, with their format and encoding. Immutable; connections share the page
/// while they send it.
class Page {
 public:
  Page(std::string bytes, Format format, Encoding encoding, std::uint64_t generation,
       Nanoseconds rendered_at = SystemClock().monotonic())
      : bytes_(std::move(bytes)),
        format_(format),
        encoding_(encoding),
        generation_(generation),
        rendered_at_(rendered_at) {}

  std::string_view bytes() const noexcept { return bytes_; }
  Format format() const noexcept { return format_; }
  Encoding encoding() const noexcept { return encoding_; }
  /// The store's generation that the page shows.
  std::uint64_t generation() const noexcept { return generation_; }
  Nanoseconds rendered_at() const noexcept { return rendered_at_; }  ///< CLOCK_MONOTONIC

 private:
  std::string bytes_;
  Format format_;
  Encoding encoding_;
  std::uint64_t generation_;
  Nanoseconds rendered_at_;
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
  /// The page in the requested encoding, or in identity if compression fails. Page::encoding() reports which.
  PagePtr page(Format format, Encoding encoding, PageDetail detail = PageDetail::configured);
  /// The same, or the last page if it is at most `age` old. For times when pages take too much memory: each
  /// new page stays in memory until its slowest reader has it.
  PagePtr recent(Format format, Encoding encoding, Nanoseconds age,
                 PageDetail detail = PageDetail::configured);
  /// Renders a page for this one request; the page is not cached.
  PagePtr filtered(Format format, Encoding encoding, const Filter& filter,
                   PageDetail detail = PageDetail::configured);

 private:
  class Slot {
   public:
    PagePtr load() const;
    void store(PagePtr page);
    void clear();
    Mutex& rendering() noexcept { return rendering_; }

   private:
    Mutex rendering_;  ///< held by the thread that renders
    mutable Mutex mutex_;
    PagePtr page_ GPUMETER_GUARDED_BY(mutex_);
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
  PagePtr current(Level& level, Format format, Encoding encoding);
  bool is_current(const Level& level, const PagePtr& page, Nanoseconds age) const;

  const Store& store_;
  std::atomic<bool> is_full_{true};  ///< of the selection
  Level standard_;
  Level full_;
};

}  // namespace gpumeter
