#include "exporter/text/page.hpp"

#include <utility>

namespace gpumeter {
namespace {

bool is_younger(const Page& page, Nanoseconds age) {
  return SystemClock().monotonic() - page.rendered_at <= age;
}

}  // namespace

PagePtr make_page(Rendered rendered, Format format, Encoding encoding) {
  if (encoding == Encoding::gzip) {
    Result<std::string> compressed = gzip(rendered.text);
    if (!compressed) return make_page(std::move(rendered), format, Encoding::identity);
    rendered.text = *std::move(compressed);  // only the compressed bytes are kept
  }
  return std::make_shared<const Page>(
      Page{std::move(rendered.text), format, encoding, rendered.generation, SystemClock().monotonic()});
}

PageCache::Level& PageCache::level(PageDetail detail) noexcept {
  const bool is_full = detail == PageDetail::configured ? is_full_.load() : detail == PageDetail::full;
  return is_full ? full_ : standard_;
}

// A render that began before holds the slot, so its page is dropped too.
void PageCache::Level::select(PageSelection selection) {
  view.select(std::move(selection));
  for (auto& encodings : slots) {
    for (Slot& slot : encodings) {
      const MutexLock alone(slot.rendering);
      slot.store(nullptr);
    }
  }
}

void PageCache::select(PageSelection selection) {
  is_full_ = selection.detail == MetricsDetail::full;
  selection.detail = MetricsDetail::standard;
  standard_.select(selection);
  selection.detail = MetricsDetail::full;
  full_.select(std::move(selection));
}

bool PageCache::is_current(const Level& level, const PagePtr& page, Nanoseconds age) const {
  if (page == nullptr) return false;
  return page->generation == store_.generation() || (level.length > kLong && is_younger(*page, age));
}

// The page must also be there a moment later, when it is served.
bool PageCache::is_ready(Format format, Encoding encoding) {
  Level& level = this->level(PageDetail::configured);
  return is_current(level, level.slot(format, encoding).load(), kRecent * 9 / 10);
}

PagePtr PageCache::page(Format format, Encoding encoding, PageDetail detail, Nanoseconds age) {
  Level& level = this->level(detail);
  Slot& slot = level.slot(format, encoding);
  PagePtr before = slot.load();
  const bool is_recent = age > Nanoseconds{} && before != nullptr && is_younger(*before, age);
  if (is_recent || is_current(level, before, kRecent)) return before;
  MutexLock alone(slot.rendering);
  PagePtr page = slot.load();
  if (page != before) return page;  // another scrape rendered it in the meantime
  Rendered text = level.view.render(format);
  level.length = text.text.size();
  page = make_page(std::move(text), format, encoding);
  slot.store(page);
  return page;
}

PagePtr PageCache::filtered(Format format, Encoding encoding, const Filter& filter, PageDetail detail) {
  return make_page(level(detail).view.render(format, filter), format, encoding);
}

PagePtr PageCache::Slot::load() const {
  MutexLock lock(mutex);
  return page;
}

void PageCache::Slot::store(PagePtr next) {
  MutexLock lock(mutex);
  page.swap(next);  // `next` frees the old page after the lock is released
}

}  // namespace gpumeter
