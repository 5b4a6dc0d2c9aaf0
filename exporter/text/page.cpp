#include "exporter/text/page.hpp"

#include "exporter/text/gzip.hpp"

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

// A render that began before holds the slot, so its page is dropped too.
void PageCache::select(PageSelection selection) {
  view_.select(std::move(selection));
  for (auto& encodings : slots_) {
    for (Slot& slot : encodings) slot.clear();
  }
}

PagePtr PageCache::page(Format format, Encoding encoding) {
  Slot& slot = this->slot(format, encoding);
  const PagePtr before = slot.load();
  if (before != nullptr && before->generation() == store_.generation()) return before;
  MutexLock alone(slot.rendering());
  PagePtr page = slot.load();
  if (page != before) return page;        // another scrape rendered it in the meantime
  page = filtered(format, encoding, {});  // the cache keeps only the compressed bytes for gzip
  slot.store(page);
  return page;
}

PagePtr PageCache::recent(Format format, Encoding encoding, Nanoseconds age) {
  const PagePtr last = slot(format, encoding).load();
  const bool is_recent = last != nullptr && SystemClock().monotonic() - last->rendered_at() <= age;
  return is_recent ? last : page(format, encoding);
}

PagePtr PageCache::filtered(Format format, Encoding encoding, const Filter& filter) {
  return make_page(view_.render(format, filter), format, encoding);
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
