#include "exporter/store/frame.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gpumeter {

// A new array of std::byte is aligned for doubles, and C++20 creates the objects stored in it implicitly. The
// casts below are therefore valid.
Frame::Frame(std::size_t slots)
    : memory_(new std::byte[slots * (sizeof(double) + sizeof(ReadStatus))]),
      values_(reinterpret_cast<double*>(memory_.get()), slots),
      statuses_(reinterpret_cast<ReadStatus*>(values_.data() + slots), slots) {
  std::ranges::fill(values_, 0.0);
  std::ranges::fill(statuses_, ReadStatus::unsupported);
}

void Frame::resize(std::size_t slots) {
  Frame resized(slots);
  const std::size_t kept = std::min(slots, size());
  std::ranges::copy(values_.first(kept), resized.values_.begin());
  std::ranges::copy(statuses_.first(kept), resized.statuses_.begin());
  *this = std::move(resized);
}

void Frame::copy_from(const Frame& other) noexcept {
  if (size() != other.size()) return;
  std::memcpy(memory_.get(), other.memory_.get(), values_.size_bytes() + statuses_.size_bytes());
}

}  // namespace gpumeter
