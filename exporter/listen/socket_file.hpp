#pragma once

#include <sys/stat.h>

#include <string>
#include <utility>

#include "base/result.hpp"

namespace gpumeter {

/// The file of a Unix socket that this process bound. The destructor removes it, unless another process has
/// replaced it. Any thread.
class SocketFile {
 public:
  SocketFile() = default;
  SocketFile(SocketFile&& other) noexcept : path_(std::exchange(other.path_, {})), file_(other.file_) {}
  SocketFile& operator=(SocketFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(file_, other.file_);
    return *this;
  }
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;
  ~SocketFile();

  /// Removes the file of a socket on which no process listens any more. Returns an Error if a process does,
  /// or if the path names another kind of file. A missing file is no error.
  static Result<Done> make_way(const std::string& path);
  /// Takes ownership of the file that bind(2) has just made, and permits every user of the machine to
  /// connect.
  static Result<SocketFile> adopt(std::string path);

 private:
  std::string path_;  ///< empty: no file
  struct stat file_ {};
};

}  // namespace gpumeter
