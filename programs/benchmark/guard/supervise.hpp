#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "programs/benchmark/measure/result.hpp"

namespace gpumeter::benchmark {

enum class End : std::uint8_t {
  finished,
  gave_way,  ///< another user appeared; nothing was measured
  stopped,   ///< it did not end in time, or a driver ended it
};

struct Supervised {
  End end = End::finished;
  std::string reason;  ///< unless it finished
  Outcome outcome;     ///< empty unless it finished
  double seconds_to_give_way =
      0;  ///< from the moment at which the user was noticed to the end of the process
};

/// Runs `work` in a process of its own and kills it if `other_user` returns a reason, or at the limit.
/// Drivers hold a GPU only for a process, and only its end is certain to return all of it, also while a call
/// hangs. `other_user` is called five times a second with the process's pid. Only single-threaded callers: it
/// forks.
Supervised supervise(const std::function<Outcome()>& work, std::chrono::milliseconds limit,
                     const std::function<std::optional<std::string>(int)>& other_user);

/// The outcome as lines, for the pipe between the two processes.
std::string to_lines(const Outcome& outcome);
/// nullopt if the text is not complete.
std::optional<Outcome> from_lines(std::string_view text);

}  // namespace gpumeter::benchmark
