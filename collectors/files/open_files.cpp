#include "collectors/files/open_files.hpp"

#include <limits>

namespace gpumeter::files {
namespace {

constexpr std::uint64_t kForGood = std::numeric_limits<std::uint64_t>::max();

}  // namespace

std::optional<int> FileCache::open_constant(const std::string& path) {
  const std::optional<int> handle = open(path);
  if (handle) entries_[static_cast<std::size_t>(*handle)].kept.is_constant = true;
  return handle;
}

Sample FileCache::read(int handle) noexcept {
  KeptInteger& kept = entries_[static_cast<std::size_t>(handle)].kept;
  if (kept.read_in == pass_ || kept.read_in == kForGood) return kept.sample;
  Entry& read = entry(handle);
  kept.sample = read.file.read_integer();
  read.is_unanswered = kept.sample.status != ReadStatus::ok;
  kept.read_in = kept.is_constant && !read.is_unanswered ? kForGood : pass_;
  if (kept.sample.status == ReadStatus::gone) suspect_ = handle;
  return kept.sample;
}

bool FileCache::answers_now() noexcept {
  return std::ranges::any_of(unanswered_, [&](int handle) { return read(handle).status == ReadStatus::ok; });
}

bool FileCache::lost() noexcept {
  if (!suspect_) return false;
  // A driver may always return ENODEV for some sensor; its path, opened again, then returns the same error.
  const int suspect = *std::exchange(suspect_, std::nullopt);
  const sysfs::File again(entries_[static_cast<std::size_t>(suspect)].path);
  return again.status() != ReadStatus::ok || again.read_integer().status != ReadStatus::gone;
}

void FileCache::clear() { *this = {}; }

TextCache::Text TextCache::read(int handle) noexcept {
  if (last_ == handle) return text_;
  Entry& read = entry(handle);
  const sysfs::Bytes bytes = read.file.read(buffer_);
  text_ = {sysfs::trimmed({buffer_.data(), bytes.size}), bytes.status};
  read.is_unanswered = text_.status != ReadStatus::ok || text_.text.empty();
  last_ = handle;
  return text_;
}

bool TextCache::answers_now() noexcept {
  return std::ranges::any_of(unanswered_, [&](int handle) {
    const Text text = read(handle);
    return text.status == ReadStatus::ok && !text.text.empty();
  });
}

void TextCache::clear() {
  entries_.clear();
  unanswered_.clear();
  last_.reset();
}

}  // namespace gpumeter::files
