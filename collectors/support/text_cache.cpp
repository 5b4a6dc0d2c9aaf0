#include "collectors/support/text_cache.hpp"

#include <algorithm>
#include <utility>

namespace gpumeter {

std::optional<int> TextCache::open(const std::string& path) {
  const auto known =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.path == path; });
  if (known != entries_.end()) return static_cast<int>(known - entries_.begin());
  sysfs::File file(path);
  if (file.status() == ReadStatus::gone) return std::nullopt;
  entries_.push_back({path, std::move(file)});
  return static_cast<int>(entries_.size()) - 1;
}

TextCache::Text TextCache::read(int handle) noexcept {
  if (last_ == handle) return text_;
  const sysfs::Bytes bytes = entries_[static_cast<std::size_t>(handle)].file.read(buffer_);
  text_ = {sysfs::trimmed({buffer_.data(), bytes.size}), bytes.status};
  last_ = handle;
  return text_;
}

void TextCache::clear() {
  entries_.clear();
  last_.reset();
}

}  // namespace gpumeter
