#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "collectors/profiles/door.hpp"

/// The text that `gpumeter profile` and the daemon exchange over a Unix stream socket. A request is lines of
/// a word and its value, and an empty line:
///
///   run NAME | pid NUMBER
///   steps NUMBER | milliseconds NUMBER
///   folder PATH          (optional)
///
/// The daemon answers `refused REASON`, or `file PID PATH` for each process and then `accepted WHEN`. The
/// lines `taken PID`, `done PID PATH`, `failed PID REASON` follow as they happen, and `end STATUS` is the
/// last line. The line `fetch PID UID` has the connection to a process attached (SCM_RIGHTS), and `fetch PID
/// UID PATH` names the Unix socket to which the client connects: the client sends debug_request() there,
/// writes the file of PID for the user, and sends `got PID` or `lost PID REASON`. It sends the same once it
/// has looked for the file after `done`: only the user sees whether the process could write it. The client
/// withdraws its request by closing the connection. Any thread.
namespace gpumeter::profiles {

struct Asked {
  std::string run;         ///< empty: `pid`
  std::optional<int> pid;  ///< as the client sees it
  Extent extent;
  std::string folder;  ///< empty: the daemon's choice
};

inline constexpr std::size_t kMostAsked = 4096;
inline constexpr unsigned kMostSteps = 1000;
inline constexpr std::chrono::seconds kLongestTrace{300};

/// Returns the request in its lines.
std::string text_of(const Asked& asked);
/// Parses a complete request, including the empty line.
Result<Asked> parse_asked(std::string_view text);

/// Returns the path of an order: folder/gpumeter_RUN_RANDOM.json. Nobody can predict the random number, so
/// nobody can put a link there. Returns an Error if the folder is not usable.
Result<std::string> path_in(std::string_view folder, std::string_view run);
/// True if path_in() gives such a name to a file, of plain characters only.
bool is_trace_name(std::string_view name);

}  // namespace gpumeter::profiles
