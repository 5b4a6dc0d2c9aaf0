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

/// The bytes one scrape receives, and what they are. Immutable; a connection that sends it shares it.
class Page {
 public:
  Page(std::string bytes, Format format, Encoding encoding, std::uint64_t generation)
      : bytes_(std::move(bytes)), format_(format), encoding_(encoding), generation_(generation) {}

  std::string_view bytes() const noexcept { return bytes_; }
  Format format() const noexcept { return format_; }
  Encoding encoding() const noexcept { return encoding_; }
  /// The store's generation that it shows.
  std::uint64_t generation() const noexcept { return generation_; }

 private:
  std::string bytes_;
  Format format_;
  Encoding encoding_;
  std::uint64_t generation_;
};
using PagePtr = std::shared_ptr<const Page>;

/// The current page in each format and encoding: rendered by the first scrape after a commit, then served
/// as it is. Any thread. A scrape waits for one render at the most: who finds one under way takes its
/// page, though a commit may have followed its start.
class PageCache {
 public:
  explicit PageCache(const Store& store) : store_(store), view_(store) {}

  /// Of the encoding asked for, or identity where compressing failed: the page says which.
  PagePtr page(Format format, Encoding encoding);
  /// Rendered for this one request and not kept.
  PagePtr filtered(Format format, Encoding encoding, const Filter& filter);

 private:
  class Slot {
   public:
    PagePtr load() const;
    void store(PagePtr page);
    Mutex& rendering() noexcept { return rendering_; }

   private:
    Mutex rendering_;  ///< held by the one thread that renders
    mutable Mutex mutex_;
    PagePtr page_ GPUMETER_GUARDED_BY(mutex_);
  };

  const Store& store_;
  TextView view_;
  std::array<std::array<Slot, kEncodingCount>, kFormatCount> slots_;
};

}  // namespace gpumeter
