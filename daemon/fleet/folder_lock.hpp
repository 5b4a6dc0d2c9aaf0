#pragma once

#include <string>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// Marks a state folder as in use, so that `gpumeter forget` does not write the folder of a running daemon.
/// The kernel removes the mark when the process ends, in whatever way.
class FolderLock {
 public:
  /// Takes the mark if no other process has it; does not wait for it. Returns an Error if the folder cannot
  /// be opened. Blocks for as long as the folder does.
  static Result<FolderLock> take(const std::string& folder);

  /// False if another process has the mark, or if the file system has no locks.
  bool is_ours() const noexcept { return is_ours_; }

 private:
  FolderLock(Descriptor folder, bool is_ours) noexcept : folder_(std::move(folder)), is_ours_(is_ours) {}

  Descriptor folder_;
  bool is_ours_;
};

}  // namespace gpumeter
