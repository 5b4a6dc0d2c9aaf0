#include "collectors/sources/file_cache.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace gpumeter {
namespace {

constexpr std::uint64_t kForGood = std::numeric_limits<std::uint64_t>::max();

}  // namespace

std::optional<int> FileCache::open(const std::string& path) {
  const auto known =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.path == path; });
  if (known != entries_.end()) return static_cast<int>(known - entries_.begin());
  sysfs::File file(path);
  if (file.status() == ReadStatus::gone) return std::nullopt;
  entries_.push_back({path, std::move(file)});
  return static_cast<int>(entries_.size()) - 1;
}

std::optional<int> FileCache::open_constant(const std::string& path) {
  const std::optional<int> handle = open(path);
  if (handle) entries_[static_cast<std::size_t>(*handle)].constant = true;
  return handle;
}

Sample FileCache::read(int handle) noexcept {
  const auto index = static_cast<std::size_t>(handle);
  Entry& entry = entries_[index];
  if (entry.read_in == pass_ || entry.read_in == kForGood) return entry.sample;
  if (entry.file.status() != ReadStatus::ok) entry.file.retry();
  entry.sample = entry.file.read_integer();
  entry.read_in = entry.constant && entry.sample.status == ReadStatus::ok ? kForGood : pass_;
  if (entry.sample.status == ReadStatus::gone) suspect_ = index;
  return entry.sample;
}

bool FileCache::note_unanswered() {
  unanswered_.clear();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const bool was_read = entries_[i].read_in != 0;
    if (was_read && entries_[i].sample.status != ReadStatus::ok) unanswered_.push_back(static_cast<int>(i));
  }
  return !unanswered_.empty();
}

bool FileCache::answers_now() noexcept {
  return std::any_of(unanswered_.begin(), unanswered_.end(),
                     [&](int handle) { return read(handle).status == ReadStatus::ok; });
}

bool FileCache::lost() noexcept {
  if (!suspect_) return false;
  // A driver may answer ENODEV for one sensor as a habit: then its path, opened anew, says the same.
  const Entry& entry = entries_[*std::exchange(suspect_, std::nullopt)];
  const sysfs::File anew(entry.path);
  return anew.status() != ReadStatus::ok || anew.read_integer().status != ReadStatus::gone;
}

void FileCache::clear() {
  entries_.clear();
  unanswered_.clear();
  suspect_.reset();
}

}  // namespace gpumeter
