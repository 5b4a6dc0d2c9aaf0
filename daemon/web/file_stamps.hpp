#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpumeter {

/// What changes when a file is written or replaced; all 0 for a file that is not there.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t modified = 0;  ///< ns since 1970
  std::int64_t changed = 0;   ///< ns since 1970
  bool operator==(const FileStamp&) const = default;
};

/// The stamps of files, in their order. Follows symbolic links. Blocks for the file system.
std::vector<FileStamp> stamps_of(const std::vector<std::string>& files);

}  // namespace gpumeter
