#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/folder.hpp"
#include "base/result.hpp"

namespace gpumeter::profiles {

/// The file of a trace that gpumeter writes, in place of the job.
struct TraceFile {
  std::string path;
  /// uid of the job's user, who may read the file. nullopt: the file is the folder's owner's.
  std::optional<std::uint32_t> reader;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();  ///< bytes; no larger trace is written
};

/// Creates the file, which must not exist. With a reader: as root the file belongs to the reader, otherwise
/// the reader is in its access control list (acl(5)); if the file system has no such lists, the reader cannot
/// open it. Blocks as the file system does.
Result<Descriptor> create(const Folder& folder, const std::string& name, const TraceFile& file);

/// Creates the folder, which every user may list, if it is missing. Removes the oldest traces in it until the
/// rest have at most `most` bytes. Blocks as the file system does.
Result<Done> make_room(const std::string& path, std::uint64_t most);

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

}  // namespace gpumeter::profiles
