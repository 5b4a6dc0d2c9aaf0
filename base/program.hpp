#pragma once

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// The process's signals, read by the main thread instead of handlers: SIGTERM, SIGINT, SIGHUP, SIGUSR1 and
/// SIGUSR2. SIGPIPE is ignored: the write to a closed connection returns an error.
class Signals {
 public:
  /// Blocks the signals in the calling thread. Call it before any other thread starts: new threads inherit
  /// the mask. The destructor restores the mask.
  static Result<Signals> block();

  Signals(Signals&& other) = default;
  Signals& operator=(Signals&&) = delete;
  ~Signals();

  /// Waits for at most `at_most` and returns the next signal. Returns nullopt if no signal came in time, or
  /// if the descriptor `other` became readable first. -1: there is no other descriptor.
  std::optional<int> wait(std::chrono::milliseconds at_most, int other = -1) noexcept;

 private:
  Signals(Descriptor fd, const sigset_t& previous) noexcept : fd_(std::move(fd)), previous_(previous) {}

  Descriptor fd_;
  sigset_t previous_;
};

/// Opens /dev/null for each of stdin, stdout and stderr that is closed. Otherwise a file or socket opened
/// later could take the number and receive the output. Writes to such a stream fail. Call it first in main().
void open_closed_streams() noexcept;

/// Writes the text to stdout. Returns the exit code: 0, or 1 if stdout does not accept all of the text; the
/// reason goes to stderr.
int print(std::string_view text);

/// An exit before the start. The text goes to stdout if the code is 0 (help, version), otherwise to stderr.
struct Exit {
  int code;
  std::string text;
};

/// Writes the text. Returns the exit code, or 1 if stdout does not accept all of it.
int print(const Exit& exit);

/// Unmaps the pages of the program and of its libraries that no process writes to: code, constants and the
/// tables of the dynamic linker. They stay in the page cache. The next use of a page maps it again, together
/// with its neighbours, without a read. Breakpoints that a debugger has set by then are lost. Any thread.
void unmap_code() noexcept;

}  // namespace gpumeter
