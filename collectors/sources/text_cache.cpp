#include "collectors/sources/text_cache.hpp"

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
  Entry& entry = entries_[static_cast<std::size_t>(handle)];
  if (entry.file.status() != ReadStatus::ok) entry.file.retry();
  const sysfs::Bytes bytes = entry.file.read(buffer_);
  text_ = {sysfs::trimmed({buffer_.data(), bytes.size}), bytes.status};
  entry.is_unanswered = text_.status != ReadStatus::ok || text_.text.empty();
  last_ = handle;
  return text_;
}

bool TextCache::note_unanswered() {
  unanswered_.clear();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].is_unanswered) unanswered_.push_back(static_cast<int>(i));
  }
  return !unanswered_.empty();
}

bool TextCache::answers_now() noexcept {
  return std::any_of(unanswered_.begin(), unanswered_.end(), [&](int handle) {
    const Text text = read(handle);
    return text.status == ReadStatus::ok && !text.text.empty();
  });
}

void TextCache::clear() {
  entries_.clear();
  unanswered_.clear();
  last_.reset();
}

}  // namespace gpumeter
