#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/enum_names.hpp"
#include "base/result.hpp"

namespace gpumeter::nccl {

/// What the last look at a file found. The label `state` of gpumeter_nccl_files.
enum class FileState : std::uint8_t { read, torn, stale, foreign, unknown_gpu, invalid };
inline constexpr EnumNames<FileState, 6> kFileStateNames = {{{FileState::read, "read"},
                                                             {FileState::torn, "torn"},
                                                             {FileState::stale, "stale"},
                                                             {FileState::foreign, "foreign"},
                                                             {FileState::unknown_gpu, "unknown_gpu"},
                                                             {FileState::invalid, "invalid"}}};

/// Writers need milliseconds for a dump, which they do not rename into place. A younger file may be torn.
inline constexpr Nanoseconds kYoung = std::chrono::seconds(1);

/// The state of a file in which its content is known.
struct FileStamp {
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  Nanoseconds modified{};  ///< since 1970, by the clock of the file system
  std::uint32_t owner = 0;

  bool operator==(const FileStamp&) const = default;
};

/// A folder in which users may write: a file is its owner's word at most, and may change at any time. Follows
/// no link at the end of a path. Blocks as its file system does. One thread.
class UserFolder {
 public:
  /// Error: the folder exists and cannot be opened. A missing folder is empty.
  static Result<UserFolder> open(const std::string& path);

  /// Calls `take` with the name of each entry. A user may add any number of them.
  void for_each(const std::function<void(const std::string& name)>& take) const;

  /// Error: no plain file of one name (a second link may be another user's), or gone.
  Result<FileStamp> look(const std::string& name) const;

  struct File {
    FileStamp stamp;
    std::string text;
    bool is_whole = false;  ///< false: the file changed while it was read

    /// Whether the text is that of the file that was seen before: its owner's, and complete.
    bool is_as(const FileStamp& seen) const noexcept { return is_whole && stamp == seen; }
  };
  /// Error: as look(), or not readable, or more than `most` bytes.
  Result<File> read(const std::string& name, std::size_t most) const;

 private:
  explicit UserFolder(Descriptor folder) : folder_(std::move(folder)) {}

  Descriptor folder_;  ///< none: the folder does not exist
};

}  // namespace gpumeter::nccl
