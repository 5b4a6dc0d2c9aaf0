#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/sources/sysfs.hpp"

namespace gpumeter {

/// Files of several values each, opened once. The text of the last one read is kept through the pass, so that
/// rows which take their values from one file, standing together in their table, cost one read. Lane thread.
class TextCache {
 public:
  /// A file's handle, the same for the same path; nullopt if there is no such file. One that may not be
  /// opened has a handle and says so in each pass.
  std::optional<int> open(const std::string& path);

  /// Forgets the text that is kept.
  void begin_pass() noexcept { last_.reset(); }

  struct Text {
    std::string_view text;  ///< trimmed; valid until the next read
    ReadStatus status;
  };
  Text read(int handle) noexcept;

  /// After rows are bound: remembers the files that were read without giving a text. False: there are none.
  bool note_unanswered();
  /// True if one of them gives a text now. Part of the pass, as read() is.
  bool answers_now() noexcept;

  void clear();

 private:
  struct Entry {
    std::string path;
    sysfs::File file;
    bool is_unanswered = false;  // as of its last read
  };

  std::vector<Entry> entries_;
  std::vector<int> unanswered_;
  std::optional<int> last_;
  Text text_{{}, ReadStatus::unsupported};
  std::array<char, 4096> buffer_{};  // a page: sysfs gives no text longer than that
};

}  // namespace gpumeter
