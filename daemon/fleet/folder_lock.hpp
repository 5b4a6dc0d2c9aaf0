#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// Marks a state folder as in use, so that neither `gpumeter forget` nor a second daemon writes the folder of
/// a running daemon. The kernel removes the mark when the process ends, in whatever way.
class FolderLock {
 public:
  /// Takes the mark if no other process has it; does not wait for it. Returns an Error if the folder cannot
  /// be opened. Blocks for as long as the folder does.
  static Result<FolderLock> take(const std::string& folder);

  /// False if another process has the mark, or if the file system has no locks.
  bool is_ours() const noexcept { return holder_ == Holder::this_process; }
  /// True if another process has the mark.
  bool is_taken() const noexcept { return holder_ == Holder::other_process; }

 private:
  enum class Holder : std::uint8_t { this_process, other_process, unknown };

  FolderLock(Descriptor folder, Holder holder) noexcept : folder_(std::move(folder)), holder_(holder) {}

  Descriptor folder_;
  Holder holder_;
};

}  // namespace gpumeter
