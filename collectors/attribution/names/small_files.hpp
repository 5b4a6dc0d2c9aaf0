#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/result.hpp"

/// Folders of small files, by which root gives facts to the daemon.
namespace gpumeter::workloads {

/// A folder of root's, or of the daemon's own user, that nobody else may change, so that its files are the
/// owner's word. Blocks as its file system does.
class TrustedFolder {
 public:
  /// Error: the folder exists, and it is not the owner's alone or cannot be read. A missing folder is empty.
  static Result<TrustedFolder> open(const std::string& path);

  /// The folder itself, for openat(2); -1: it does not exist.
  int number() const noexcept { return folder_.number(); }
  std::uint32_t owner() const noexcept { return owner_; }

  /// Names of the entries, sorted, at most `most`.
  std::vector<std::string> names(std::size_t most) const;

  struct File {
    std::string text;
    std::int64_t modified = 0;  ///< seconds since 1970
  };
  /// A plain file of this user that has no other name, with at most `most_bytes`. nullopt: there is none.
  std::optional<File> read(const std::string& name, std::uint32_t owner, std::size_t most_bytes) const;

 private:
  TrustedFolder(Descriptor folder, std::uint32_t owner) : folder_(std::move(folder)), owner_(owner) {}

  Descriptor folder_;  ///< none: the folder does not exist
  std::uint32_t owner_ = 0;
};

}  // namespace gpumeter::workloads
