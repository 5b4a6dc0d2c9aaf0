#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "daemon/profiles/trace_file.hpp"

namespace gpumeter {

/// The head of an HTTP answer.
struct AnswerHead {
  int status = 0;                       ///< 0: it is not one
  std::optional<std::uint64_t> length;  ///< of the body, if the server names it
};

/// Parses the lines before the body. Any bytes.
AnswerHead parse_answer_head(std::string_view text);

/// Sends the request to an HTTP server on a non-blocking connection, which may be under way, and writes the
/// body of the answer to a new file. Returns the size of the body. Returns an Error, and leaves no file,
/// unless the status is 200 and the body is complete. Ends if the server sends nothing for `patience`.
/// Blocks; a thread of the command, or one of its own.
Result<std::uint64_t> fetch_to_file(const Descriptor& connection, std::string_view request,
                                    const TraceFile& file, Nanoseconds patience);

}  // namespace gpumeter
