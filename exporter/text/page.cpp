#include "exporter/text/page.hpp"

#include "exporter/text/format.hpp"

namespace gpumeter {
namespace {

PagePtr compressed(const PagePtr& page) {
  Result<std::string> bytes = gzip(page->bytes());
  if (!bytes) return page;
  return std::make_shared<Page>(*std::move(bytes), page->format(), Encoding::gzip, page->generation());
}

}  // namespace

PagePtr make_page(Rendered rendered, Format format, Encoding encoding) {
  auto page =
      std::make_shared<Page>(std::move(rendered.text), format, Encoding::identity, rendered.generation);
  return encoding == Encoding::gzip ? compressed(page) : page;
}

PageCache::Level& PageCache::level(PageDetail detail) noexcept {
  const bool is_full = detail == PageDetail::configured ? is_full_.load() : detail == PageDetail::full;
  return is_full ? full_ : standard_;
}

// A render that began before holds the slot, so its page is dropped too.
void PageCache::Level::select(PageSelection selection) {
  view.select(std::move(selection));
  for (auto& encodings : slots) {
    for (Slot& slot : encodings) slot.clear();
  }
}

void PageCache::select(PageSelection selection) {
  is_full_ = selection.detail == MetricsDetail::full;
  selection.detail = MetricsDetail::standard;
  standard_.select(selection);
  selection.detail = MetricsDetail::full;
  full_.select(std::move(selection));
}

PagePtr PageCache::page(Format format, Encoding encoding, PageDetail detail) {
  return current(level(detail), format, encoding);
}

bool PageCache::is_current(const Level& level, const PagePtr& page, Nanoseconds age) const {
  if (page == nullptr) return false;
  if (page->generation() == store_.generation()) return true;
  return level.length > kLong && SystemClock().monotonic() - page->rendered_at() <= age;
}

// The page must also be there a moment later, when it is served.
bool PageCache::is_ready(Format format, Encoding encoding) {
  Level& level = this->level(PageDetail::configured);
  return is_current(level, level.slot(format, encoding).load(), kRecent * 9 / 10);
}

PagePtr PageCache::current(Level& level, Format format, Encoding encoding) {
  Slot& slot = level.slot(format, encoding);
  PagePtr before = slot.load();
  if (is_current(level, before, kRecent)) return before;
  MutexLock alone(slot.rendering());
  PagePtr page = slot.load();
  if (page != before) return page;  // another scrape rendered it in the meantime
  Rendered text = level.view.render(format);
  level.length = text.text.size();
  page = make_page(std::move(text), format, encoding);  // of gzip, only the compressed bytes are kept
  slot.store(page);
  return page;
}

PagePtr PageCache::recent(Format format, Encoding encoding, Nanoseconds age, PageDetail detail) {
  Level& level = this->level(detail);
  if (age <= Nanoseconds{}) return current(level, format, encoding);
  PagePtr last = level.slot(format, encoding).load();
  const bool is_recent = last != nullptr && SystemClock().monotonic() - last->rendered_at() <= age;
  return is_recent ? last : current(level, format, encoding);
}

PagePtr PageCache::filtered(Format format, Encoding encoding, const Filter& filter, PageDetail detail) {
  return make_page(level(detail).view.render(format, filter), format, encoding);
}

PagePtr PageCache::Slot::load() const {
  MutexLock lock(mutex_);
  return page_;
}

void PageCache::Slot::clear() {
  const MutexLock alone(rendering_);
  store(nullptr);
}

void PageCache::Slot::store(PagePtr page) {
  MutexLock lock(mutex_);
  page_.swap(page);  // `page` frees the old page after the lock is released
}

}  // namespace gpumeter
