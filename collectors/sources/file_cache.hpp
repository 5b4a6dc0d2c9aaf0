#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectors/sources/sysfs.hpp"

namespace gpumeter {

/// The integer files that one device is read from, each opened once and read at most once a pass, however
/// many rows ask. Lane thread.
class FileCache {
 public:
  /// For rows: the file's handle, the same for the same path; nullopt if there is no such file. A file that
  /// may not be opened has a handle and says so in each pass.
  std::optional<int> open(const std::string& path);

  /// The same for what does not change while its driver is loaded (a size, a limit): read until it answers
  /// once, then kept.
  std::optional<int> open_constant(const std::string& path);

  /// Forgets what the pass before has read.
  void begin_pass() noexcept { ++pass_; }

  Sample read(int handle) noexcept;

  /// After rows are bound: remembers the files that were read without giving a number. False: there are none.
  bool note_unanswered();
  /// True if one of them gives a number now. Part of the pass, as read() is.
  bool answers_now() noexcept;

  /// True if files have gone from under their readers: the device was removed, or its driver loaded anew.
  /// To be asked between passes; costs nothing while no read said `gone`.
  bool lost() noexcept;

  void clear();

 private:
  struct Entry {
    std::string path;
    sysfs::File file;
    bool constant = false;
    std::uint64_t read_in = 0;  // the pass that `sample` is of
    Sample sample = Sample::miss(ReadStatus::unsupported);
  };

  std::vector<Entry> entries_;
  std::uint64_t pass_ = 1;
  std::vector<int> unanswered_;
  std::optional<std::size_t> suspect_;  // the last file that was gone
};

}  // namespace gpumeter
