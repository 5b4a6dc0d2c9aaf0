#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/sources/sysfs.hpp"

namespace gpumeter::files {

/// A device's files, each opened once. Rows refer to them by handle. Lane thread.
template <class Kept>
class OpenFiles {
 public:
  /// Returns the file's handle, the same for the same path; nullopt if the file does not exist. A file that
  /// may not be opened has a handle; each read of it returns the reason.
  std::optional<int> open(const std::string& path) {
    const auto known = std::ranges::find(entries_, path, &Entry::path);
    if (known != entries_.end()) return static_cast<int>(known - entries_.begin());
    sysfs::File file(path);
    if (file.status() == ReadStatus::gone) return std::nullopt;
    entries_.push_back({path, std::move(file), false, {}});
    return static_cast<int>(entries_.size()) - 1;
  }

  /// Called after rows are bound: records the files whose last read returned no value. False if there are
  /// none.
  bool note_unanswered() {
    unanswered_.clear();
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].is_unanswered) unanswered_.push_back(static_cast<int>(i));
    }
    return !unanswered_.empty();
  }

 protected:
  struct Entry {
    std::string path;
    sysfs::File file;
    bool is_unanswered = false;  // in its last read
    Kept kept;
  };

  /// Returns the entry. Tries to open its file again if that failed before.
  Entry& entry(int handle) noexcept {
    Entry& found = entries_[static_cast<std::size_t>(handle)];
    if (found.file.status() != ReadStatus::ok) found.file.retry();
    return found;
  }

  std::vector<Entry> entries_;
  std::vector<int> unanswered_;
};

struct KeptInteger {
  bool is_constant = false;
  std::uint64_t read_in = 0;  // the pass in which `sample` was read
  Sample sample = Sample::miss(ReadStatus::unsupported);
};

/// Files of one integer each. A file is read at most once per pass, regardless of the number of rows.
class FileCache : public OpenFiles<KeptInteger> {
 public:
  /// For a value that does not change while its driver is loaded (a size, a limit). The file is read until
  /// one read succeeds; that value is kept.
  std::optional<int> open_constant(const std::string& path);

  /// Discards the readings of the last pass.
  void begin_pass() noexcept { ++pass_; }

  Sample read(int handle) noexcept;

  /// True if a file of note_unanswered() now contains a number. Counts as part of the pass, like read().
  bool answers_now() noexcept;

  /// True if the files were removed while open: the device was removed, or its driver loaded again. Call it
  /// between passes. It costs nothing unless a read returned `gone`.
  bool lost() noexcept;

  void clear();

 private:
  std::uint64_t pass_ = 1;
  std::optional<int> suspect_;  // the last file that was gone
};

struct KeptNothing {};

/// Files of several values each. The text of the last file read is kept during the pass. Adjacent rows that
/// use one file therefore cost one read.
class TextCache : public OpenFiles<KeptNothing> {
 public:
  /// Discards the kept text.
  void begin_pass() noexcept { last_.reset(); }

  struct Text {
    std::string_view text;  ///< trimmed; valid until the next read
    ReadStatus status;
  };
  Text read(int handle) noexcept;

  /// As in FileCache, for a text that is not empty.
  bool answers_now() noexcept;

  void clear();

 private:
  std::optional<int> last_;
  Text text_{{}, ReadStatus::unsupported};
  std::array<char, 4096> buffer_{};  // a page: no text of sysfs is longer
};

}  // namespace gpumeter::files
