#include "exporter/store/source.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "exporter/store/store.hpp"

namespace gpumeter {

Source::Source(Source&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      stored_(other.stored_),
      frame_(std::move(other.frame_)),
      end_(other.end_),
      free_(std::move(other.free_)),
      changes_(std::move(other.changes_)),
      is_cleared_(other.is_cleared_) {}

Source& Source::operator=(Source&& other) noexcept {
  std::swap(store_, other.store_);
  std::swap(stored_, other.stored_);
  std::swap(frame_, other.frame_);
  std::swap(end_, other.end_);
  std::swap(free_, other.free_);
  std::swap(changes_, other.changes_);
  std::swap(is_cleared_, other.is_cleared_);
  return *this;
}

Source::~Source() {
  if (store_ != nullptr) store_->detach(*stored_);
}

Source::Slot Source::add(const MetricDescriptor& family, Labels labels, Part part, double since) {
  Slot slot = end_;
  if (free_.empty()) {
    // Grows by an eighth, but by at least kFewest slots: a GPU's processes are few compared with its series.
    constexpr std::size_t kFewest = 8;
    if (end_ == frame_.size()) reserve(end_ + std::max(kFewest, end_ / 8));
    ++end_;
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  changes_.push_back({Change::Kind::add, slot, &family, std::move(labels), part, since});
  return slot;
}

void Source::reserve(std::size_t slots) {
  if (slots > frame_.size()) frame_.resize(slots);
}

void Source::relabel(Slot slot, Labels labels) {
  changes_.push_back({.kind = Change::Kind::relabel, .slot = slot, .labels = std::move(labels)});
}

// Without memory the series stays in the store without a value, and its slot is not used again.
void Source::drop(Slot slot) noexcept {
  miss(slot, ReadStatus::unsupported);
  try {
    changes_.push_back({.kind = Change::Kind::drop, .slot = slot});
    free_.push_back(slot);
  } catch (const std::bad_alloc&) {
  }
}

void Source::clear() {
  frame_ = Frame();
  end_ = 0;
  free_.clear();
  changes_.clear();
  is_cleared_ = true;
}

void Source::commit(Nanoseconds now) {
  if (!is_cleared_ && changes_.empty()) return store_->commit(*stored_, frame_, now);
  store_->commit(*stored_, *this, now);
  std::vector<Change>().swap(changes_);  // a device has hundreds of changes at its start and none afterwards
  is_cleared_ = false;
}

void Source::hide() noexcept { store_->hide(*stored_); }

}  // namespace gpumeter
