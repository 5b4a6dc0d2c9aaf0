#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>

#include "base/descriptor.hpp"
#include "base/folder.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// The file of a Unix socket that this process bound. The destructor removes it, unless another process has
/// replaced it. Any thread.
class SocketFile {
 public:
  SocketFile() = default;
  SocketFile(SocketFile&&) noexcept = default;
  SocketFile& operator=(SocketFile&& other) noexcept;
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;
  ~SocketFile();

  /// Gives the socket a name in an existing folder. Replaces a file only if it is a socket on which no
  /// process listens any more. At no moment does the file grant more access than `mode`. Where another user
  /// could replace the folder, the address that the kernel lists is one of /proc/self/fd.
  static Result<SocketFile> bind(const Descriptor& socket, const std::string& path, mode_t mode);

  /// False: this process has no file.
  explicit operator bool() const noexcept { return folder_ != nullptr; }
  /// False: the kernel lists another address than the path.
  bool has_own_address() const noexcept { return folder_ != nullptr && folder_->is_private_way(); }

 private:
  std::unique_ptr<const Folder> folder_;  ///< none: no file
  std::string name_;
  struct stat file_ {};
};

}  // namespace gpumeter
