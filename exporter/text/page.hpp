#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/mutex.hpp"
#include "exporter/text/filter.hpp"
#include "exporter/text/format.hpp"
#include "exporter/text/view.hpp"

namespace gpumeter {

/// The bytes that one scrape receives, with their format and encoding. Immutable; connections share the page
/// while they send it.
class Page {
 public:
  Page(std::string bytes, Format format, Encoding encoding, std::uint64_t generation)
      : bytes_(std::move(bytes)), format_(format), encoding_(encoding), generation_(generation) {}

  std::string_view bytes() const noexcept { return bytes_; }
  Format format() const noexcept { return format_; }
  Encoding encoding() const noexcept { return encoding_; }
  /// The store's generation that the page shows.
  std::uint64_t generation() const noexcept { return generation_; }

 private:
  std::string bytes_;
  Format format_;
  Encoding encoding_;
  std::uint64_t generation_;
};
using PagePtr = std::shared_ptr<const Page>;

/// The current page in each format and encoding: the first scrape after a commit renders it, later scrapes
/// reuse it. Any thread. A scrape waits for one render at most. If a render is under way, the scrape takes
/// that page, even if a commit followed the start of the render.
class PageCache {
 public:
  explicit PageCache(const Store& store) : store_(store), view_(store) {}

  /// The page in the requested encoding, or in identity if compression fails. Page::encoding() reports which.
  PagePtr page(Format format, Encoding encoding);
  /// Renders a page for this one request; the page is not cached.
  PagePtr filtered(Format format, Encoding encoding, const Filter& filter);

 private:
  class Slot {
   public:
    PagePtr load() const;
    void store(PagePtr page);
    Mutex& rendering() noexcept { return rendering_; }

   private:
    Mutex rendering_;  ///< held by the thread that renders
    mutable Mutex mutex_;
    PagePtr page_ GPUMETER_GUARDED_BY(mutex_);
  };

  const Store& store_;
  TextView view_;
  std::array<std::array<Slot, kEncodingCount>, kFormatCount> slots_;
};

}  // namespace gpumeter
