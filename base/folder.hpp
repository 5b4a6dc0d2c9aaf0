#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// A folder in which another user may write, and the only way to write files: tests/layers_test.py finds the
/// others. Root writes in folders of the daemon, the daemon in folders of jobs.
///
/// The folder is opened component by component, and a symbolic link on the way is followed only if it belongs
/// to root or to this process's user, and has no second name: whoever owns the folder, or one above it,
/// cannot direct a call elsewhere. In the folder, a name is a single component, and no link is followed:
/// openat(2) with O_NOFOLLOW is then what openat2(2) does with RESOLVE_NO_SYMLINKS and RESOLVE_BENEATH, also
/// on kernels before 5.6. Only descriptors are given to chmod and chown. What root creates belongs to the
/// folder's owner.
///
/// One thread at a time. Each call blocks for as long as the file system does.
class Folder {
 public:
  static Result<Folder> open(const std::string& path);
  /// Creates what is missing; a new last folder has this mode whatever the umask is, those above it 0755.
  static Result<Folder> make(const std::string& path, mode_t mode);
  /// A folder whose files are the word of root, or of this process's user: nobody else may change it. Error:
  /// others may. A missing folder is one without files.
  static Result<Folder> open_trusted(const std::string& path);

  /// False: open_trusted() found no folder.
  explicit operator bool() const noexcept { return static_cast<bool>(folder_); }
  /// For calls that end in at(2); no other use, because it is opened with O_PATH.
  int number() const noexcept { return folder_.number(); }
  std::uint32_t owner() const noexcept { return owner_; }
  std::uint32_t group() const noexcept { return group_; }
  /// No other user can replace this folder by another one, or one above it.
  bool is_private_way() const noexcept { return is_private_way_; }

  /// Names of the entries without the hidden ones, sorted, at most `most`.
  std::vector<std::string> names(std::size_t most) const;
  /// The facts of the entry itself, which may be a link. nullopt: there is none, or errno says why.
  std::optional<struct stat> facts(const std::string& name) const;
  bool lacks(const std::string& name) const;

  /// Returns the contents of a regular file of at most `most` bytes. A FIFO is an Error, and not waited for.
  Result<std::string> read(const std::string& name, std::size_t most) const;
  struct File {
    std::string text;
    std::int64_t modified = 0;  ///< seconds since 1970
  };
  /// A regular file of this user that has no other name. nullopt: there is none.
  std::optional<File> read_of(std::uint32_t owner, const std::string& name, std::size_t most) const;

  /// An entry that anybody may have put there. No call reaches a file system that is mounted on it, which
  /// might hang (openat2(2), since Linux 5.6). nullopt: there is none, or errno says why; EXDEV: such a
  /// mount.
  std::optional<struct stat> foreign_facts(const std::string& name) const;
  /// The contents of the regular file with these foreign_facts(), of at most `most` bytes. Error: it is
  /// another one by now, or changes.
  Result<std::string> read_foreign(const std::string& name, const struct stat& facts, std::size_t most) const;

  /// Creates a file with exactly this mode, open for writing. Error: the name is taken, even by a link.
  Result<Descriptor> create(const std::string& name, mode_t mode) const;
  /// Opens the file, which is only locked and never written, or creates it empty.
  Result<Descriptor> open_lock(const std::string& name, mode_t mode) const;

  /// The event that a file must outlive.
  enum class Outlives : std::uint8_t {
    power_cut,  ///< fsync(2) before and after the rename
    crash,      ///< of this process: the kernel keeps the data, so nothing is synced
  };
  /// Replaces a file atomically: after the event it is the old one or the new one. Writes NAME.new first.
  Result<Done> replace(const std::string& name, const std::string& text, mode_t mode, Outlives event) const;
  Result<Done> rename(const std::string& from, const std::string& to) const;
  /// Removes a name that is not a folder's. A missing one is no Error.
  Result<Done> remove(const std::string& name) const;

  /// A descriptor of the folder that can be read, locked and synced.
  Result<Descriptor> reopen() const;

 private:
  static Result<Folder> walk(const std::string& path, std::optional<mode_t> missing);

  Folder() = default;
  Error failed(const std::string& name) const;
  Result<Descriptor> open_file(const std::string& name) const;
  Descriptor open_foreign(const std::string& name, int flags) const;
  Result<Done> write(const Descriptor& file, const std::string& name, const std::string& text) const;

  Descriptor folder_;  ///< O_PATH; none: the folder does not exist
  std::string path_;
  std::uint32_t owner_ = 0;
  std::uint32_t group_ = 0;
  bool is_private_way_ = true;
};

/// A path, split at its last slash. A path without one is in ".".
struct PathOfFile {
  explicit PathOfFile(const std::string& path);

  std::string folder;
  std::string name;
};

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
