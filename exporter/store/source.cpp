#include "exporter/store/source.hpp"

#include <algorithm>
#include <utility>

#include "exporter/store/store.hpp"

namespace gpumeter {

Source::Source(Source&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      stored_(other.stored_),
      frame_(std::move(other.frame_)),
      end_(other.end_),
      free_(std::exchange(other.free_, kNone)),
      next_free_(std::move(other.next_free_)),
      changes_(std::move(other.changes_)),
      has_drops_(other.has_drops_),
      is_cleared_(other.is_cleared_) {}

Source& Source::operator=(Source&& other) noexcept {
  std::swap(store_, other.store_);
  std::swap(stored_, other.stored_);
  std::swap(frame_, other.frame_);
  std::swap(end_, other.end_);
  std::swap(free_, other.free_);
  std::swap(next_free_, other.next_free_);
  std::swap(changes_, other.changes_);
  std::swap(has_drops_, other.has_drops_);
  std::swap(is_cleared_, other.is_cleared_);
  return *this;
}

Source::~Source() {
  if (store_ != nullptr) store_->detach(*stored_);
}

Source::Slot Source::add(const MetricDescriptor& family, Labels labels, SeriesPart part, double since) {
  const Slot slot = free_ == kNone ? end_ : free_;
  // Grows by an eighth, but by at least kFewest slots: a GPU's processes are few compared with its series.
  constexpr std::size_t kFewest = 8;
  if (slot == frame_.size()) reserve(end_ + std::max(kFewest, end_ / 8));
  changes_.push_back({Change::Kind::add, slot, &family, std::move(labels), part, since});
  if (slot == end_) {
    ++end_;
  } else {
    free_ = next_free_[slot];
  }
  return slot;
}

void Source::reserve(std::size_t slots) {
  if (slots <= frame_.size()) return;
  next_free_.resize(slots, kNone);
  frame_.resize(slots);
}

void Source::relabel(Slot slot, Labels labels) {
  changes_.push_back({.kind = Change::Kind::relabel, .slot = slot, .labels = std::move(labels)});
}

void Source::drop(Slot slot) noexcept {
  miss(slot, ReadStatus::unsupported);
  next_free_[slot] = std::exchange(free_, slot);
  has_drops_ = true;
}

void Source::clear() {
  frame_ = Frame();
  end_ = 0;
  free_ = kNone;
  next_free_.clear();
  changes_.clear();
  has_drops_ = false;
  is_cleared_ = true;
}

void Source::commit(Nanoseconds now) {
  if (!is_cleared_ && !has_drops_ && changes_.empty()) return store_->commit(*stored_, frame_, now);
  store_->commit(*stored_, *this, now);
  std::vector<Change>().swap(changes_);  // a device has hundreds of changes at its start and none afterwards
  has_drops_ = is_cleared_ = false;
}

void Source::hide() noexcept { store_->hide(*stored_); }

}  // namespace gpumeter
